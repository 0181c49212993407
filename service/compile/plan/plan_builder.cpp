#include "service/compile/plan/plan_builder.h"

#include <algorithm>
#include <cstring>

#include "service/compile/plan/collectives.h"
#include "service/compile/plan/divergence.h"
#include "service/core/error.h"
#include "service/kernels/movement/movement.h"
#include "service/kernels/tile/code_pays.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;

class BlockBuilder {
 public:
  BlockBuilder(PlanBuilder& builder, const PlanOptions& options) : builder_(builder), options_(options) {}

  BuilderBlock block(const LocalBlock& local, const std::vector<LocalId>& results) {
    std::vector<const LocalOp*> ops;
    for (const LocalOp& op : local.ops) {
      if (!name_only(op)) ops.push_back(&op);
    }
    BuilderBlock out;
    out.results = results;
    const std::vector<LocalId> live = live_out(ops, results);
    std::vector<BuilderStep> steps = fuse_block(builder_, ops, live, options_.fuse);
    if (options_.fuse) fuse_producers(builder_, live, options_.fuse_sums && options_.shares_memory, steps);
    if (options_.fuse && options_.fuse_rows) fuse_rows(builder_, live, steps);
    if (options_.fuse && options_.fuse_concatenations) fuse_concatenations(builder_, live, steps);
    for (BuilderStep& step : steps) {
      if (step.op != nullptr && step.op->kind == LocalKind::kWhile) {
        loop(std::move(step), out);
      } else if (step.op != nullptr && step.op->kind == LocalKind::kCase) {
        branches(std::move(step), out);
      } else if (step.op != nullptr && step.op->kind == LocalKind::kEffect) {
        out.steps.push_back(effect(std::move(step)));
      } else {
        out.steps.push_back(std::move(step));
      }
    }
    return out;
  }

 private:
  // Ops that only give bytes another name leave no step.
  bool name_only(const LocalOp& op) {
    std::vector<int32_t> map;
    switch (op.kind) {
      case LocalKind::kView:
        name_as(op.results[0], op.operands[0], kIdentity);
        return true;
      case LocalKind::kReshard:
        if (!reshard_is_rename(builder_, op, map)) return false;
        if (reads_elsewhere(op, map)) {
          if (!options_.shares_memory) return false;
          builder_.shares_between_devices = true;
        }
        name_as(op.results[0], op.operands[0],
                builder_.tables.intern(std::move(map), builder_.tables[builder_.value(op.operands[0]).table].count()));
        return true;
      case LocalKind::kConstant:
      case LocalKind::kPosition:
        builder_.value(op.results[0]).constant = &op;
        return true;
      case LocalKind::kOp:
        if (op.def == nullptr || !op.def->result_is_operand) return false;
        for (size_t i = 0; i < op.results.size(); ++i) {
          name_as(
              op.results[i], op.operands[i],
              builder_.tables.projection(builder_.value(op.results[i]).table, builder_.value(op.operands[i]).table));
        }
        return true;
      default:
        return false;
    }
  }

  // Some device would read the bytes of a shard that it does not hold. Every process has all constants.
  bool reads_elsewhere(const LocalOp& op, const std::vector<int32_t>& map) const {
    if (builder_.value(builder_.memory_of(op.operands[0])).constant != nullptr) return false;
    const ShardTable& from = builder_.tables[builder_.value(op.operands[0]).table];
    const ShardTable& to = builder_.tables[builder_.value(op.results[0]).table];
    for (size_t device = 0; device < to.shard_of_device.size(); ++device) {
      const int32_t shard = to.shard_of_device[device];
      if (shard >= 0 && from.shard_of_device[device] != map[static_cast<size_t>(shard)]) return true;
    }
    return false;
  }

  void name_as(LocalId id, LocalId of, MapId map) {
    builder_.value(id).alias_of = of;
    builder_.value(id).alias_map = map;
    builder_.names[of].push_back(id);
  }

  // Values that must be in memory after the block's plain ops: its results, and what nested blocks read.
  std::vector<LocalId> live_out(const std::vector<const LocalOp*>& ops, const std::vector<LocalId>& results) {
    std::vector<LocalId> out = results;
    for (const LocalOp* op : ops) {
      for (const LocalBlock& inner : op->blocks) partition::for_each_use(inner, [&](LocalId id) { out.push_back(id); });
    }
    return out;
  }

  void loop(BuilderStep step, BuilderBlock& out) {
    const LocalOp& op = *step.op;
    const LocalBlock& condition = op.blocks[0];
    const LocalBlock& body = op.blocks[1];
    step.operands.clear();
    step.name = op.name;
    std::vector<size_t> carried;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const LocalId init = op.operands[i];
      if (body.results[i] == body.arguments[i]) {
        // Never changes: three names of the value before the loop.
        for (const LocalId id : {condition.arguments[i], body.arguments[i], op.results[i]}) {
          name_as(id, init, builder_.tables.projection(builder_.value(id).table, builder_.value(init).table));
        }
        continue;
      }
      carried.push_back(i);
      const LocalId variable = builder_.add_like(op.results[i], "carried by " + op.name);
      for (const LocalId id : {condition.arguments[i], body.arguments[i], op.results[i]}) {
        name_as(id, variable, builder_.tables.projection(builder_.value(id).table, builder_.value(variable).table));
      }
      out.steps.push_back(make_copy(builder_, init, variable));
      out.steps.back().location = op.location;
    }
    step.blocks.push_back(block(condition, {condition.results[0]}));
    step.operands = {condition.results[0]};
    step.table = builder_.value(condition.results[0]).table;
    std::vector<LocalId> returned;
    for (const size_t i : carried) returned.push_back(body.results[i]);
    step.blocks.push_back(block(body, returned));
    step.blocks.back().results.clear();
    for (const size_t i : carried) {
      BuilderStep::Carry carry;
      carry.variable = builder_.value(op.results[i]).alias_of;
      carry.body_result = body.results[i];
      carry.back = builder_.add_like(carry.variable, "next " + op.name);
      step.blocks.back().steps.push_back(make_copy(builder_, carry.body_result, carry.back));
      step.blocks.back().steps.back().location = op.location;
      step.blocks.back().steps.back().is_together = true;
      step.carries.push_back(carry);
      step.results.push_back(op.results[i]);
    }
    out.steps.push_back(std::move(step));
  }

  void branches(BuilderStep step, BuilderBlock& out) {
    const LocalOp& op = *step.op;
    step.name = op.name;
    step.operands = {op.operands[0]};
    step.table = builder_.value(op.operands[0]).table;
    step.is_bool = builder_.value(op.operands[0]).type.local.dtype == tensor::DType::kBool;
    step.results = op.results;
    for (const LocalBlock& local : op.blocks) {
      BuilderBlock branch = block(local, local.results);
      branch.results.clear();
      for (size_t i = 0; i < op.results.size(); ++i) {
        branch.steps.push_back(make_copy(builder_, local.results[i], op.results[i]));
        branch.steps.back().location = op.location;
      }
      step.blocks.push_back(std::move(branch));
    }
    out.steps.push_back(std::move(step));
  }

  BuilderStep effect(BuilderStep step) {
    const LocalOp& op = *step.op;
    step.name = op.name;
    step.results = op.results;
    const sharding::SubAxisSet mask = op.effect.every_device ? builder_.tables.view(op.view).all() : 0;
    step.table = builder_.tables.table(op.view, mask);
    return step;
  }

  PlanBuilder& builder_;
  const PlanOptions& options_;
};

}  // namespace

LocalView::LocalView(const partition::LocalProgram& program, const LocalOp& op)
    : operands(program.local_types(op.operands)),
      results(program.local_types(op.results)),
      view{operands, results, &op.attributes, op.regions, program.function.get(), &op.location} {}

bool is_pure(const partition::LocalProgram& program, const LocalOp& op) {
  if (op.kind == LocalKind::kConstant) return true;
  if (op.kind != LocalKind::kOp || op.def == nullptr || !op.blocks.empty()) return false;
  const LocalView local(program, op);
  return !op.def->is_random && !op.def->result_is_operand && !ops::has_effect(*op.def, local.view);
}

LocalId PlanBuilder::add_like(LocalId like, const std::string& name) {
  BuilderValue made = value(like);
  made.alias_of = -1;
  made.alias_map = kIdentity;
  made.constant = nullptr;
  made.argument = -1;
  made.name = name;
  values.push_back(std::move(made));
  return static_cast<LocalId>(values.size() - 1);
}

LocalId PlanBuilder::memory_of(LocalId id) const {
  while (value(id).alias_of >= 0) id = value(id).alias_of;
  return id;
}

std::pair<LocalId, MapId> PlanBuilder::root(LocalId id) {
  MapId map = kIdentity;
  const TableId from = value(id).table;
  while (value(id).alias_of >= 0) {
    map = tables.compose(map, value(id).alias_map, from);
    id = value(id).alias_of;
  }
  return {id, map};
}

std::string without_dialect(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool is_single_op(const BuilderStep& step) {
  return step.op != nullptr && step.op->def != nullptr && step.name == step.op->name &&
         step.operands == step.op->operands;
}

void add_lines(BuilderStep& step, const std::vector<int32_t>& lines) {
  step.lines.insert(step.lines.end(), lines.begin(), lines.end());
  std::sort(step.lines.begin(), step.lines.end());
  step.lines.erase(std::unique(step.lines.begin(), step.lines.end()), step.lines.end());
}

void note_producer(BuilderStep& step, const std::string& producer, const std::vector<int32_t>& lines) {
  step.name = "fused " + without_dialect(producer) + " " + without_dialect(step.name) + " (2 ops)";
  add_lines(step, lines);
}

const ir::DenseAttr* splat_of(const PlanBuilder& builder, LocalId id) {
  const LocalOp* op = builder.value(id).constant;
  if (op == nullptr || op->kind != LocalKind::kConstant) return nullptr;
  const ir::Attribute* found = ir::find(op->attributes, "value");
  const auto* dense = found == nullptr ? nullptr : found->as<ir::DenseAttr>();
  if (dense == nullptr) throw core::Error("internal", "a constant without a value");
  return dense->splat || tensor::element_count(dense->type) == 1 ? dense : nullptr;
}

BuilderStep make_fill(PlanBuilder& builder, LocalId splat, LocalId to) {
  const ir::DenseAttr dense = *splat_of(builder, splat);
  BuilderStep step;
  step.name = "fill";
  step.results = {to};
  step.table = builder.value(to).table;
  const tensor::TensorType& type = builder.value(to).type.local;
  const int64_t count = tensor::element_count(type);
  const int64_t size = tensor::size_bytes(type.dtype);
  constexpr int64_t kWorkItemElements = int64_t{1} << 16;
  step.kernel.work_count = core::ceil_div(count, kWorkItemElements);
  step.kernel.bytes = static_cast<double>(count * size);
  step.constants = kernels::find_nonfinite(type.dtype, dense.bytes->data(), 1);
  if (count <= kernels::kMostWhileLanes) {
    kernels::Fill fill{.dtype = type.dtype, .element = {}, .lanes = count};
    fill.element.assign(dense.bytes->begin(), dense.bytes->begin() + size);
    step.kernel.small = std::make_shared<const kernels::SmallStep>(std::move(fill));
  }
  step.kernel.run = [dense, count, size](const ops::KernelCall& call) {
    const int64_t start = call.begin * kWorkItemElements;
    const int64_t stop = std::min(count, call.end * kWorkItemElements);
    if (stop > start) kernels::fill_elements(call.results[0] + start * size, dense.bytes->data(), stop - start, size);
  };
  return step;
}

BuilderStep make_copy(PlanBuilder& builder, LocalId from, LocalId to) {
  const LocalId source = builder.memory_of(from);
  if (splat_of(builder, source) != nullptr) return make_fill(builder, source, to);
  BuilderStep step;
  step.is_copy = true;
  step.name = "copy";
  step.operands = {from};
  step.results = {to};
  step.table = builder.value(to).table;
  const int64_t bytes = builder.value(to).bytes;
  constexpr int64_t kWorkItemBytes = int64_t{1} << 18;
  step.kernel.work_count = core::ceil_div(bytes, kWorkItemBytes);
  step.kernel.bytes = 2.0 * static_cast<double>(bytes);
  step.kernel.run = [bytes](const ops::KernelCall& call) {
    const int64_t start = call.begin * kWorkItemBytes;
    const int64_t stop = std::min(bytes, call.end * kWorkItemBytes);
    if (stop > start && call.results[0] != call.operands[0]) {
      std::memcpy(call.results[0] + start, call.operands[0] + start, static_cast<size_t>(stop - start));
    }
  };
  return step;
}

void set_offsets(PlanBuilder& builder, BuilderStep& step, LocalId id) {
  const partition::ShardedType& type = builder.value(id).type;
  step.offset_layout = type.layout;
  step.offset_sizes = type.local.dims;
}

PlanBuilder build_steps(const partition::LocalProgram& program, const PlanOptions& options) {
  PlanBuilder builder(program, program.device_count());
  if (options.generate_code) builder.code_after = options.code_after.value_or(kernels::kCodePays);
  const std::vector<sharding::SubAxisSet> masks = analyze_divergence(program);
  for (size_t i = 0; i < program.values.size(); ++i) {
    BuilderValue made;
    made.type = program.values[i].type;
    made.type.varies = masks[i];
    made.name = program.values[i].name;
    made.table = builder.tables.table(made.type.layout.view, made.type.varies);
    made.bytes = tensor::byte_count(made.type.local);
    builder.values.push_back(std::move(made));
  }
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    builder.value(program.arguments[i].value).argument = static_cast<int64_t>(i);
  }
  builder.body = BlockBuilder(builder, options).block(program.body, program.body.results);
  // A constant of the plan cannot leave it: such results get bytes of their own.
  for (const LocalId id : program.body.results) {
    builder.results.push_back(id);
    if (builder.value(builder.memory_of(id)).constant == nullptr) continue;
    builder.results.back() = builder.add_like(id, "result");
    builder.body.steps.push_back(make_copy(builder, id, builder.results.back()));
  }
  builder.body.results = builder.results;
  return builder;
}

}  // namespace meshd::compile
