// Words for tests of the plan and the engine: local programs built by hand, runs of them, shards as numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/device/engine.h"
#include "service/ops/op_def.h"
#include "service/partition/dead_ops.h"
#include "tests/support/pending_run.h"
#include "tests/unit/ops/support.h"

namespace meshd::test {

using partition::LocalBlock;
using partition::LocalId;
using partition::LocalKind;
using partition::LocalOp;
using sharding::SubAxisSet;

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

template <typename T>
std::vector<T> values_of(const tensor::BufferRef& buffer) {
  std::vector<T> out(static_cast<size_t>(buffer->size()) / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), buffer->data(), out.size() * sizeof(T));
  return out;
}

/// Builds a LocalProgram over one mesh. Blocks are entered with Inside.
class LocalBuilder {
 public:
  explicit LocalBuilder(tensor::Dims sub_axis_sizes) {
    program.views.push_back({std::move(sub_axis_sizes), {}});
    block_ = &program.body;
  }

  /// A value of `type` (text of its whole, "8x6xf32"), cut by sub-axes, varying over more sub-axes.
  LocalId value(std::string_view text, std::vector<std::vector<int>> dim_sub_axes = {}, SubAxisSet more = 0) {
    const tensor::TensorType whole = type(text).tensor;
    dim_sub_axes.resize(whole.dims.size());
    auto sharded = partition::ShardedType::of(program.views[0], whole, {0, std::move(dim_sub_axes)}, more);
    program.values.push_back({std::move(sharded), "%" + std::to_string(program.values.size())});
    return static_cast<LocalId>(program.values.size() - 1);
  }

  /// A value like another one, perhaps of another dtype.
  LocalId like(LocalId id, std::string_view dtype = "") {
    partition::LocalValue made = program.value(id);
    if (!dtype.empty()) made.type.local.dtype = *tensor::dtype_from_stablehlo(dtype);
    made.name = "%" + std::to_string(program.values.size());
    program.values.push_back(std::move(made));
    return static_cast<LocalId>(program.values.size() - 1);
  }

  LocalId argument(std::string_view text, std::vector<std::vector<int>> dim_sub_axes = {}, SubAxisSet more = 0) {
    const LocalId id = value(text, std::move(dim_sub_axes), more);
    partition::LocalParameter parameter;
    parameter.value = id;
    parameter.position = static_cast<int64_t>(program.arguments.size());
    parameter.global_type = program.type(id).logical();
    program.arguments.push_back(parameter);
    program.body.arguments.push_back(id);
    return id;
  }

  void result(LocalId id) {
    partition::LocalParameter parameter;
    parameter.value = id;
    parameter.position = static_cast<int64_t>(program.results.size());
    parameter.global_type = program.type(id).logical();
    program.results.push_back(parameter);
    program.body.results.push_back(id);
  }

  /// Argument `argument` is given up, and `result` takes its buffer if it can.
  void donate(size_t argument, int64_t result = -1) {
    program.arguments[argument].is_donated = true;
    program.arguments[argument].aliases = result;
  }

  LocalOp& add(LocalKind kind, std::string name, std::vector<LocalId> operands, std::vector<LocalId> results) {
    LocalOp op;
    op.kind = kind;
    op.name = std::move(name);
    op.operands = std::move(operands);
    op.results = std::move(results);
    op.location.line = ++line_;
    block_->ops.push_back(std::move(op));
    return block_->ops.back();
  }

  LocalOp& op(std::string_view row, std::vector<LocalId> operands, std::vector<LocalId> results,
              ir::AttributeList attributes = {}) {
    LocalOp& made = add(LocalKind::kOp, std::string(row), std::move(operands), std::move(results));
    made.def = ops::find_op(row);
    made.attributes = std::move(attributes);
    EXPECT_NE(made.def, nullptr) << row;
    return made;
  }

  /// A pointwise op whose result is like its first operand.
  LocalId point(std::string_view row, std::vector<LocalId> operands) {
    const LocalId out = like(operands[0]);
    op(row, std::move(operands), {out});
    return out;
  }

  LocalId compare(std::string_view direction, LocalId a, LocalId b) {
    const LocalId out = like(a, "i1");
    op("stablehlo.compare", {a, b}, {out},
       {{"comparison_direction", attribute(ir::EnumAttr{"comparison_direction", std::string(direction)})}});
    return out;
  }

  template <typename T>
  LocalId splat(std::string_view text, T element, std::vector<std::vector<int>> dim_sub_axes = {}) {
    const LocalId id = value(text, std::move(dim_sub_axes));
    ir::DenseAttr dense;
    dense.type = program.type(id).logical();
    dense.splat = true;
    dense.bytes = std::make_shared<const std::vector<std::byte>>(bytes_of(std::vector<T>{element}));
    add(LocalKind::kConstant, "stablehlo.constant", {}, {id}).attributes = {{"value", attribute(dense)}};
    return id;
  }

  template <typename T>
  LocalId constant(std::string_view text, const std::vector<T>& elements,
                   std::vector<std::vector<int>> dim_sub_axes = {}) {
    const LocalId id = value(text, std::move(dim_sub_axes));
    ir::DenseAttr dense;
    dense.type = program.type(id).logical();
    dense.bytes = std::make_shared<const std::vector<std::byte>>(bytes_of(elements));
    add(LocalKind::kConstant, "stablehlo.constant", {}, {id}).attributes = {{"value", attribute(dense)}};
    return id;
  }

  LocalId broadcast(LocalId from, std::string_view text, std::vector<int64_t> dims,
                    std::vector<std::vector<int>> dim_sub_axes = {}) {
    const LocalId out = value(text, std::move(dim_sub_axes));
    op("stablehlo.broadcast_in_dim", {from}, {out},
       {{"broadcast_dimensions", attribute(ir::IntArrayAttr{std::move(dims), "i64"})}});
    return out;
  }

  LocalId reshard(LocalId from, std::vector<std::vector<int>> dim_sub_axes, SubAxisSet more = 0) {
    const LocalId out = value(tensor::to_string(program.type(from).logical()), std::move(dim_sub_axes), more);
    add(LocalKind::kReshard, "reshard", {from}, {out});
    return out;
  }

  LocalId reduce_shards(LocalId from, SubAxisSet reduced, std::string_view row = "stablehlo.add") {
    const LocalId out = like(from);
    program.values[static_cast<size_t>(out)].type.varies &= ~reduced;
    LocalOp& made = add(LocalKind::kReduceShards, "all_reduce", {from}, {out});
    made.reduced = reduced;
    made.regions.push_back(binary_region(*function_, row, ir::Type::of({program.type(from).local.dtype, {}})));
    return out;
  }

  LocalId position() {
    const LocalId out = value("ui32", {}, program.views[0].all());
    add(LocalKind::kPosition, "stablehlo.partition_id", {}, {out});
    return out;
  }

  LocalOp& effect(std::vector<LocalId> operands, std::vector<LocalId> results, bool every_device, bool ordered = true) {
    LocalOp& made = add(LocalKind::kEffect, "stablehlo.custom_call", std::move(operands), std::move(results));
    made.effect.every_device = every_device;
    made.effect.ordered = ordered;
    made.effect.program_point = static_cast<int32_t>(program.effect_count++);
    made.effect.callback = made.effect.program_point;
    return made;
  }

  /// Ops are appended to `block` while this lives.
  class Inside {
   public:
    Inside(LocalBuilder& builder, LocalBlock& block)
        : builder_(builder), before_(std::exchange(builder.block_, &block)) {}
    ~Inside() { builder_.block_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    LocalBuilder& builder_;
    LocalBlock* before_;
  };

  /// while: `condition(arguments) -> predicate`, `body(arguments) -> next values`. `varying`: what results vary over
  /// beside.
  template <typename Condition, typename Body>
  std::vector<LocalId> loop(const std::vector<LocalId>& inits, const Condition& condition, const Body& body,
                            SubAxisSet varying = 0) {
    LocalBlock cond_block;
    LocalBlock body_block;
    std::vector<LocalId> results;
    const auto name = [&](std::vector<LocalId>& into) {
      for (const LocalId init : inits) {
        into.push_back(like(init));
        program.values[static_cast<size_t>(into.back())].type.varies |= varying;
      }
    };
    name(cond_block.arguments);
    name(body_block.arguments);
    {
      const Inside inside(*this, cond_block);
      cond_block.results = {condition(cond_block.arguments)};
    }
    {
      const Inside inside(*this, body_block);
      body_block.results = body(body_block.arguments);
    }
    name(results);
    LocalOp& made = add(LocalKind::kWhile, "stablehlo.while", inits, results);
    made.blocks = {std::move(cond_block), std::move(body_block)};
    return results;
  }

  /// case: each branch gives the values of one block.
  std::vector<LocalId> branch(LocalId index, const std::vector<std::function<std::vector<LocalId>()>>& branches,
                              SubAxisSet varying = 0) {
    std::vector<LocalBlock> blocks;
    for (const auto& make : branches) {
      LocalBlock made;
      const Inside inside(*this, made);
      made.results = make();
      blocks.push_back(std::move(made));
    }
    std::vector<LocalId> results;
    for (const LocalId id : blocks[0].results) {
      results.push_back(like(id));
      program.values[static_cast<size_t>(results.back())].type.varies |= varying;
    }
    add(LocalKind::kCase, "stablehlo.case", {index}, results).blocks = std::move(blocks);
    return results;
  }

  /// As partition gives it: without dead ops.
  const partition::LocalProgram& finish() {
    program.function = function_;
    partition::drop_dead_ops(program);
    return program;
  }

  partition::LocalProgram program;

 private:
  std::shared_ptr<ir::Function> function_ = std::make_shared<ir::Function>();
  LocalBlock* block_ = nullptr;
  int32_t line_ = 0;
};

/// An engine with a pool, and runs that are waited for.
class Bench {
 public:
  explicit Bench(device::EngineOptions options = {.device_count = 64, .threads = 2})
      : pool(tensor::BufferPool::create(int64_t{1} << 30)), engine(std::move(options), pool) {}

  tensor::BufferRef buffer(const std::vector<std::byte>& bytes) {
    tensor::BufferRef out = pool->allocate(static_cast<int64_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(out->data(), bytes.data(), bytes.size());
    return out;
  }
  template <typename T>
  device::RunArgument shards(const std::vector<std::vector<T>>& values, bool may_overwrite = false) {
    device::RunArgument out;
    for (const auto& shard : values) out.shards.push_back(buffer(bytes_of(shard)));
    out.may_overwrite = may_overwrite;
    return out;
  }

  using Pending = testing::PendingRun;
  std::shared_ptr<Pending> start(device::RunRequest request) { return testing::start(engine, std::move(request)); }
  device::RunOutcome run(const compile::PlanRef& plan, std::vector<device::RunArgument> arguments) {
    device::RunRequest request;
    request.plan = plan;
    request.arguments = std::move(arguments);
    return start(std::move(request))->wait();
  }

  std::shared_ptr<tensor::BufferPool> pool;
  device::Engine engine;
};

/// All shards of all outputs.
inline std::vector<std::vector<std::byte>> all_bytes(const device::RunOutcome& outcome) {
  std::vector<std::vector<std::byte>> out;
  EXPECT_TRUE(outcome.ok()) << (outcome.error ? outcome.error->detail() : "");
  for (const auto& result : outcome.outputs) {
    for (const auto& shard : result) out.emplace_back(shard->bytes().begin(), shard->bytes().end());
  }
  return out;
}

/// Shards of one output as numbers.
template <typename T>
std::vector<std::vector<T>> output(const device::RunOutcome& outcome, size_t number = 0) {
  if (outcome.error) {
    ADD_FAILURE() << outcome.error->code().word() << ": " << outcome.error->detail() << " "
                  << outcome.error->internal();
    return {};
  }
  std::vector<std::vector<T>> out;
  for (const tensor::BufferRef& shard : outcome.outputs.at(number)) out.push_back(values_of<T>(shard));
  return out;
}

/// The plan with another estimate of each step: the engine takes it to be worth sharing between threads, or not to be.
inline compile::PlanRef estimated_at(const compile::PlanRef& plan, double step_ns) {
  compile::Plan out = *plan;
  for (compile::Block& block : out.blocks) {
    for (compile::Step& step : block.steps) step.estimated_ns = step_ns;
  }
  return std::make_shared<const compile::Plan>(std::move(out));
}

inline compile::PlanRef plan_of(LocalBuilder& builder, int threads = 2, bool fuse = true, bool shares_memory = true) {
  compile::PlanOptions options;
  options.shares_memory = shares_memory;
  options.donate_as_text_says = true;
  options.threads = threads;
  options.fuse = fuse;
  return compile::make_plan(builder.finish(), options);
}

}  // namespace meshd::test
