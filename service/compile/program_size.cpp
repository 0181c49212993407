#include "service/compile/program_size.h"

#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/core/checked_math.h"
#include "service/kernels/fused/small_while.h"
#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

constexpr int64_t kHeapBlock = 16;     // what the allocator adds
constexpr int64_t kTypeBytes = 48;     // dims of a type, on the heap
constexpr int64_t kKernelBytes = 512;  // a prepared kernel, with what it captures
constexpr size_t kInPlace = 15;        // characters that a string has without the heap

int64_t bytes_of(const std::string& text) {
  return text.size() > kInPlace ? static_cast<int64_t>(text.size()) + kHeapBlock : 0;
}

template <typename T>
int64_t bytes_of(const std::vector<T>& items) {
  return items.empty() ? 0 : static_cast<int64_t>(items.size() * sizeof(T)) + kHeapBlock;
}

/// Adds up modules; bytes of constants once.
class ModuleSize {
 public:
  void add(const ir::Module& module) {
    total_ += static_cast<int64_t>(sizeof(module));
    add(module.attributes);
    for (const ir::Function& function : module.functions) {
      total_ += static_cast<int64_t>(sizeof(function)) + bytes_of(function.values);
      add(function.attributes);
      for (const auto* parameters : {&function.arguments, &function.results}) {
        total_ += bytes_of(*parameters);
        for (const ir::Parameter& parameter : *parameters) add(parameter.attributes);
      }
      for (const ir::Value& value : function.values) total_ += kTypeBytes + bytes_of(value.name);
      add(function.body);
    }
    for (const ir::InlinedCall& call : module.inlined_calls) {
      total_ += static_cast<int64_t>(sizeof(call)) + bytes_of(call.arguments) + bytes_of(call.results) +
                bytes_of(call.location.calls);
    }
  }
  [[nodiscard]] int64_t total() const { return total_; }

 private:
  void add(const ir::Region& region) {
    total_ += bytes_of(region.arguments) + bytes_of(region.ops);
    for (const ir::Op& op : region.ops) {
      total_ += bytes_of(op.name) + bytes_of(op.operands) + bytes_of(op.results) + bytes_of(op.regions) +
                bytes_of(op.location.calls) + bytes_of(op.location.name);
      add(op.attributes);
      for (const ir::Region& inside : op.regions) add(inside);
    }
  }
  void add(const ir::AttributeList& list) {
    total_ += bytes_of(list);
    for (const ir::NamedAttribute& entry : list) {
      total_ += bytes_of(entry.name);
      add(entry.value);
    }
  }
  void add(const ir::Attribute& attribute) {
    if (const auto* dense = attribute.as<ir::DenseAttr>()) {
      if (seen_.insert(dense->bytes.get()).second) total_ += bytes_of(*dense->bytes) + kTypeBytes;
    } else if (const auto* list = attribute.as<ir::ArrayAttr>()) {
      total_ += bytes_of(list->values);
      for (const ir::Attribute& value : list->values) add(value);
    } else if (const auto* entries = attribute.as<ir::DictAttr>()) {
      add(entries->entries);
    } else if (const auto* numbers = attribute.as<ir::IntArrayAttr>()) {
      total_ += bytes_of(numbers->values);
    } else if (const auto* text = attribute.as<ir::StringAttr>()) {
      total_ += bytes_of(text->value);
    } else if (const auto* opaque = attribute.as<ir::OpaqueAttr>()) {
      total_ += bytes_of(opaque->text);
    } else if (const auto* shardings = attribute.as<ir::ShardingAttr>()) {
      total_ += bytes_of(shardings->shardings);
    } else if (const auto* types = attribute.as<ir::TypeAttr>()) {
      total_ += bytes_of(types->inputs) + bytes_of(types->results);
    }
  }

  int64_t total_ = 0;
  std::unordered_set<const void*> seen_;
};

int64_t plan_bytes(const Plan& plan) {
  int64_t total = static_cast<int64_t>(sizeof(plan)) + bytes_of(plan.views) + bytes_of(plan.tables) +
                  bytes_of(plan.values) + bytes_of(plan.slots) + bytes_of(plan.blocks) + bytes_of(plan.arguments) +
                  bytes_of(plan.results) + bytes_of(plan.effects) + bytes_of(plan.constant_bytes) +
                  bytes_of(plan.device_share);
  for (const ShardTable& table : plan.tables)
    total += bytes_of(table.shard_of_device) + bytes_of(table.device_of_shard);
  for (const std::vector<int32_t>& map : plan.maps) total += bytes_of(map);
  for (const PlanValue& value : plan.values) total += kTypeBytes + bytes_of(value.name);
  for (const Block& block : plan.blocks) {
    total += bytes_of(block.steps);
    for (const Step& step : block.steps) {
      total += bytes_of(step.operands) + bytes_of(step.results) + bytes_of(step.offsets) + bytes_of(step.exchanges) +
               bytes_of(step.name) + bytes_of(step.lines) + bytes_of(step.reason) + bytes_of(step.location.calls) +
               kKernelBytes + step.kernel->code_bytes;
      if (step.small != nullptr) total += step.small->loop->code_bytes();
      if (step.by_shard != nullptr) total += bytes_of(step.by_shard->own);
    }
  }
  return total;
}

}  // namespace

int64_t size_bytes(const ParsedProgram& parsed) {
  ModuleSize modules;
  modules.add(*parsed.module);
  if (parsed.flat != parsed.module) modules.add(*parsed.flat);
  // Syntax takes some hundred bytes for each word.
  constexpr int64_t kSyntaxBytes = 64;
  const int64_t syntax = parsed.needs_trace() ? kSyntaxBytes * static_cast<int64_t>(parsed.text.size()) : 0;
  return syntax + static_cast<int64_t>(sizeof(parsed)) + bytes_of(parsed.text) + bytes_of(parsed.arguments) +
         bytes_of(parsed.results) + bytes_of(parsed.derivation) + static_bytes(parsed.derivation) + modules.total();
}

int64_t size_bytes(const LoweredProgram& lowered) {
  // Counted with each program that keeps it: the cache of parsed programs may have let go of it.
  return size_bytes(*lowered.parsed) + static_cast<int64_t>(sizeof(lowered)) + bytes_of(lowered.key) +
         bytes_of(lowered.argument_shardings) + bytes_of(lowered.result_shardings) + bytes_of(lowered.warnings) +
         plan_bytes(*lowered.plan);
}

int64_t result_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanParameter& one : plan.results)
    bytes = core::checked_add(bytes, tensor::byte_count(one.parameter.global_type));
  return bytes;
}

}  // namespace meshd::compile
