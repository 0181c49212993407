#include "service/program/transform/inline_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/collective/sdy_collectives.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/program/analysis/call_graph.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

/// How much a function becomes once its calls are copied in.
struct Extent {
  int64_t op_count = 0;
  int depth = 0;  ///< of nested regions
};

/// Counts before anything is copied, so that a short text cannot ask for a huge copy.
class Measure {
 public:
  Measure(const ir::Module& module, int64_t max_ops) {
    for (const size_t i : callees_first(module)) {
      const ir::Function& function = module.functions[i];
      Extent extent;
      ir::walk(function.body, [&](const ir::Op& op, std::span<const ir::Op* const> enclosing) {
        const std::string name = callee_of(op);
        const Extent callee = name.empty() ? Extent{1, 0} : extents_.at(name);
        extent.op_count = std::min(extent.op_count + callee.op_count, max_ops + 1);
        extent.depth = std::max(extent.depth, static_cast<int>(enclosing.size()) + 1 + callee.depth);
      });
      extents_.emplace(function.name, extent);
    }
  }

  [[nodiscard]] const Extent& of(const ir::Function& function) const { return extents_.at(function.name); }

 private:
  std::unordered_map<std::string_view, Extent> extents_;
};

/// A function of a few ops without regions and calls: what may be copied to every op that names it.
bool is_short(const ir::Function& function) {
  constexpr size_t kMostOps = 64;
  const std::vector<ir::Op>& ops = function.body.ops;
  return ops.size() <= kMostOps && std::all_of(ops.begin(), ops.end(), [](const ir::Op& op) {
           return op.regions.empty() && callee_of(op).empty() &&
                  ops::role_of(ops::op(op.code).body) != ops::Structural::kCustomCall;
         });
}

/// The call stack of a copy.
struct Frame {
  std::vector<int32_t> calls;
  int32_t number = -1;
};

class Inliner {
 public:
  explicit Inliner(const ir::Module& module) {
    for (const ir::Function& function : module.functions) functions_.emplace(function.name, &function);
    out_.name = module.name;
    out_.attributes = module.attributes;
    out_.meshes = module.meshes;
    out_.num_partitions = module.num_partitions;
    out_.num_replicas = module.num_replicas;
  }

  ir::Module run(const ir::Function& entry) {
    main_.name = entry.name;
    main_.is_public = entry.is_public;
    main_.arguments = entry.arguments;
    main_.results = entry.results;
    main_.attributes = entry.attributes;
    main_.location = entry.location;
    std::vector<ir::ValueId> map(entry.values.size(), ir::kNoValue);
    arguments(entry, entry.body, map, main_.body);
    ops(entry, entry.body.ops, map, main_.body, {});
    out_.functions.push_back(std::move(main_));
    // Functions that custom calls name (called_computations) stay beside @main as they are.
    for (const std::string& name : referenced_) {
      const auto found = functions_.find(name);
      if (found != functions_.end() && found->second != &entry) out_.functions.push_back(*found->second);
    }
    return std::move(out_);
  }

 private:
  void arguments(const ir::Function& source, const ir::Region& from, std::vector<ir::ValueId>& map, ir::Region& to) {
    for (const ir::ValueId id : from.arguments) to.arguments.push_back(fresh(source, id, map));
  }

  ir::ValueId fresh(const ir::Function& source, ir::ValueId id, std::vector<ir::ValueId>& map) {
    const ir::Value& value = source.values[static_cast<size_t>(id)];
    return map[static_cast<size_t>(id)] = main_.add_value(value.type, value.name);
  }

  /// Copies ops of `source` behind those of `to`.
  void ops(const ir::Function& source, std::span<const ir::Op> from, std::vector<ir::ValueId>& map, ir::Region& to,
           const Frame& frame) {
    for (const ir::Op& op : from) {
      if (!callee_of(op).empty()) {
        call(op, map, to, frame);
        continue;
      }
      ir::Op copy;
      copy.code = op.code;
      copy.name = op.name;
      copy.attributes = op.attributes;
      remember_called(op);
      copy.location = op.location;
      copy.location.calls = frame.calls;
      copy.location.frame = frame.number;
      for (const ir::ValueId id : op.operands) copy.operands.push_back(map[static_cast<size_t>(id)]);
      for (const ir::Region& region : op.regions) {
        ir::Region& nested = copy.regions.emplace_back();
        arguments(source, region, map, nested);
        ops(source, region.ops, map, nested, frame);
      }
      attach_called(op, copy, frame);
      for (const ir::ValueId id : op.results) copy.results.push_back(fresh(source, id, map));
      to.ops.push_back(std::move(copy));
    }
  }

  /// A computation that a custom call names becomes its region, so that the op is self-contained.
  void attach_called(const ir::Op& op, ir::Op& copy, const Frame& frame) {
    const ops::CustomCallDef* def = ops::find_custom_call(op);
    if (def == nullptr || !def->called_is_region || !op.regions.empty()) return;
    const ir::Attribute* called = ir::find(op.attributes, "called_computations");
    const auto* list = called == nullptr ? nullptr : called->as<ir::ArrayAttr>();
    if (list == nullptr) return;
    for (const ir::Attribute& each : list->values) {
      const auto* symbol = each.as<ir::SymbolAttr>();
      const auto found = symbol == nullptr ? functions_.end() : functions_.find(symbol->name);
      if (found == functions_.end()) continue;
      const ir::Function& callee = *found->second;
      if (!is_short(callee)) continue;
      std::vector<ir::ValueId> inner(callee.values.size(), ir::kNoValue);
      ir::Region& region = copy.regions.emplace_back();
      arguments(callee, callee.body, inner, region);
      ops(callee, callee.body.ops, inner, region, frame);
    }
  }

  void remember_called(const ir::Op& op) {
    const ir::Attribute* called = ir::find(op.attributes, "called_computations");
    const auto* list = called == nullptr ? nullptr : called->as<ir::ArrayAttr>();
    if (list == nullptr) return;
    for (const ir::Attribute& each : list->values) {
      if (const auto* symbol = each.as<ir::SymbolAttr>()) referenced_.insert(symbol->name);
    }
  }

  void call(const ir::Op& op, std::vector<ir::ValueId>& map, ir::Region& to, const Frame& frame) {
    const ir::Function& callee = *functions_.at(callee_of(op));
    ir::InlinedCall entry;
    entry.callee = callee.name;
    entry.callee_is_public = callee.is_public;
    entry.parent = frame.number;
    entry.location = op.location;
    entry.location.calls = frame.calls;
    entry.location.frame = frame.number;
    for (const ir::ValueId id : op.operands) entry.arguments.push_back(map[static_cast<size_t>(id)]);
    for (const ir::Parameter& argument : callee.arguments) entry.argument_shardings.push_back(argument.sharding);
    const ir::Attribute* own = ir::find(op.attributes, "sdy.sharding");
    for (size_t i = 0; i < callee.results.size(); ++i) {
      const auto* shardings = own == nullptr ? nullptr : own->as<ir::ShardingAttr>();
      entry.result_shardings.push_back(shardings == nullptr ? callee.results[i].sharding : shardings->shardings.at(i));
    }
    Frame inner = frame;
    inner.calls.push_back(op.location.line);
    inner.number = static_cast<int32_t>(out_.inlined_calls.size());
    std::vector<ir::ValueId> inner_map(callee.values.size(), ir::kNoValue);
    const std::vector<ir::ValueId> given = entry.arguments;
    std::vector<ir::ValueId> known;  // what an edge of a result would not tell apart
    for (size_t i = 0; i < given.size(); ++i) {
      const bool is_again = std::find(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(i), given[i]) !=
                            given.begin() + static_cast<std::ptrdiff_t>(i);
      known.push_back(is_again ? edge(given[i], static_cast<int64_t>(i), op, inner, to) : given[i]);
      inner_map[static_cast<size_t>(callee.body.arguments[i])] = known.back();
    }
    out_.inlined_calls.push_back(std::move(entry));
    const std::span<const ir::Op> body(callee.body.ops);
    ops(callee, body.first(body.size() - 1), inner_map, to, inner);
    const std::vector<ir::ValueId>& returned = body.back().operands;
    for (size_t i = 0; i < returned.size(); ++i) {
      ir::ValueId result = inner_map[static_cast<size_t>(returned[i])];
      if (std::find(known.begin(), known.end(), result) != known.end())
        result = edge(result, ops::kReturnedEdge, op, inner, to);
      known.push_back(result);
      out_.inlined_calls[static_cast<size_t>(inner.number)].results.push_back(result);
      map[static_cast<size_t>(op.results[i])] = result;
    }
  }

  /// Another name for a value at the edge of a call (ops/collective/sdy_collectives.h). Scalars and tokens are never
  /// sharded: they keep theirs.
  ir::ValueId edge(ir::ValueId id, int64_t number, const ir::Op& call, const Frame& inner, ir::Region& to) {
    const ir::Value value = main_.values[static_cast<size_t>(id)];
    if (!value.type.is_tensor() || value.type.rank() == 0) return id;
    ir::Op op;
    op.name = "sdy.data_flow_edge";
    op.code = ops::code_of(op.name);
    op.operands = {id};
    op.results = {main_.add_value(value.type, value.name)};
    op.attributes = {{std::string(ops::kCallEdge), ir::Attribute{ir::IntegerAttr{number, "i64"}}}};
    op.location = call.location;
    op.location.calls = inner.calls;
    op.location.frame = inner.number;
    to.ops.push_back(op);
    return op.results.front();
  }

  std::unordered_map<std::string_view, const ir::Function*> functions_;
  ir::Module out_;
  ir::Function main_;
  std::set<std::string> referenced_;
};

}  // namespace

ir::Module inline_calls(const ir::Module& module, int64_t max_ops) {
  const ir::Function& entry = module.main();
  const Extent extent = Measure(module, max_ops).of(entry);
  if (extent.op_count > max_ops) {
    ir::fail("invalid_program", entry.location,
             fmt::format("with its calls copied in, @main has more than {} ops", max_ops));
  }
  if (extent.depth > kMaxRegionDepth) {
    ir::fail("invalid_program", entry.location,
             fmt::format("with its calls copied in, regions of @main nest more than {} deep", kMaxRegionDepth));
  }
  return Inliner(module).run(entry);
}

}  // namespace meshd::program
