#include "service/compile/draft.h"

#include <algorithm>
#include <cstring>

#include "service/compile/collectives.h"
#include "service/core/error.h"
#include "service/kernels/movement.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;

// Which ops are needed: their results are read, or they do something that is seen outside.
class Needed {
 public:
  explicit Needed(const LocalProgram& program) : used_(program.values.size(), 0) { block(program.body); }

  bool operator()(const LocalOp& op) const {
    if (has_effect(op)) return true;
    return std::any_of(op.results.begin(), op.results.end(),
                       [&](LocalId id) { return used_[static_cast<size_t>(id)] != 0; });
  }

 private:
  static bool has_effect(const LocalOp& op) {
    if (op.kind == LocalKind::kEffect) return op.effect.has_side_effect;
    if (op.kind == LocalKind::kOp && op.def != nullptr && op.def->has_effect) return true;
    return std::any_of(op.blocks.begin(), op.blocks.end(), [](const LocalBlock& inner) {
      return std::any_of(inner.ops.begin(), inner.ops.end(), [](const LocalOp& in) { return has_effect(in); });
    });
  }

  void use(const std::vector<LocalId>& ids) {
    for (const LocalId id : ids) used_[static_cast<size_t>(id)] = 1;
  }

  void block(const LocalBlock& body) {
    use(body.results);
    for (auto op = body.ops.rbegin(); op != body.ops.rend(); ++op) {
      if (!(*this)(*op)) continue;
      use(op->operands);
      for (const LocalBlock& inner : op->blocks) block(inner);
    }
  }

  std::vector<char> used_;
};

class Drafter {
 public:
  Drafter(Draft& draft, bool fuse) : draft_(draft), needed_(*draft.program), fuse_(fuse) {}

  DraftBlock block(const LocalBlock& local, const std::vector<LocalId>& results) {
    std::vector<const LocalOp*> ops;
    for (const LocalOp& op : local.ops) {
      if (needed_(op) && !name_only(op)) ops.push_back(&op);
    }
    DraftBlock out;
    out.results = results;
    for (DraftStep& step : fuse_block(draft_, ops, live_out(ops, results), fuse_)) {
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
        if (!draft_.value(op.results[0]).is_tensor) return true;
        if (!reshard_is_rename(draft_, op, map)) return false;
        name_as(op.results[0], op.operands[0],
                draft_.tables.intern(std::move(map), draft_.tables[draft_.value(op.operands[0]).table].count()));
        return true;
      case LocalKind::kConstant:
      case LocalKind::kPosition:
        draft_.value(op.results[0]).constant = &op;
        return true;
      case LocalKind::kOp:
        if (op.def == nullptr || !op.def->result_is_operand) return false;
        for (size_t i = 0; i < op.results.size(); ++i) {
          name_as(op.results[i], op.operands[i],
                  draft_.tables.projection(draft_.value(op.results[i]).table, draft_.value(op.operands[i]).table));
        }
        return true;
      default:
        return false;
    }
  }

  void name_as(LocalId id, LocalId of, MapId map) {
    draft_.value(id).alias_of = of;
    draft_.value(id).alias_map = map;
  }

  // Values that must stand in memory after the block's plain ops: its results, and what nested blocks read.
  std::vector<LocalId> live_out(const std::vector<const LocalOp*>& ops, const std::vector<LocalId>& results) {
    std::vector<LocalId> out = results;
    for (const LocalOp* op : ops) {
      for (const LocalBlock& inner : op->blocks) collect_uses(inner, out);
    }
    return out;
  }

  void collect_uses(const LocalBlock& body, std::vector<LocalId>& out) {
    out.insert(out.end(), body.results.begin(), body.results.end());
    for (const LocalOp& op : body.ops) {
      if (!needed_(op)) continue;
      out.insert(out.end(), op.operands.begin(), op.operands.end());
      for (const LocalBlock& inner : op.blocks) collect_uses(inner, out);
    }
  }

  void loop(DraftStep step, DraftBlock& out) {
    const LocalOp& op = *step.op;
    const LocalBlock& condition = op.blocks[0];
    const LocalBlock& body = op.blocks[1];
    step.operands.clear();
    step.name = op.name;
    std::vector<size_t> carried;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (!draft_.value(op.results[i]).is_tensor) continue;
      const LocalId init = op.operands[i];
      if (body.results[i] == body.arguments[i]) {
        // Never changes: three names of the value before the loop.
        for (const LocalId id : {condition.arguments[i], body.arguments[i], op.results[i]}) {
          name_as(id, init, draft_.tables.projection(draft_.value(id).table, draft_.value(init).table));
        }
        continue;
      }
      carried.push_back(i);
      const LocalId variable = draft_.add_like(op.results[i], "carried by " + op.name);
      for (const LocalId id : {condition.arguments[i], body.arguments[i], op.results[i]}) {
        name_as(id, variable, draft_.tables.projection(draft_.value(id).table, draft_.value(variable).table));
      }
      out.steps.push_back(make_copy(draft_, init, variable));
      out.steps.back().location = op.location;
    }
    step.blocks.push_back(block(condition, {condition.results[0]}));
    step.operands = {condition.results[0]};
    step.table = draft_.value(condition.results[0]).table;
    std::vector<LocalId> returned;
    for (const size_t i : carried) returned.push_back(body.results[i]);
    step.blocks.push_back(block(body, returned));
    step.blocks.back().results.clear();
    for (const size_t i : carried) {
      DraftStep::Carry carry;
      carry.variable = draft_.value(op.results[i]).alias_of;
      carry.body_argument = body.arguments[i];
      carry.body_result = body.results[i];
      carry.back = draft_.add_like(carry.variable, "next " + op.name);
      step.blocks.back().steps.push_back(make_copy(draft_, carry.body_result, carry.back));
      step.blocks.back().steps.back().location = op.location;
      step.blocks.back().steps.back().is_together = true;
      step.carries.push_back(carry);
      step.results.push_back(op.results[i]);
    }
    out.steps.push_back(std::move(step));
  }

  void branches(DraftStep step, DraftBlock& out) {
    const LocalOp& op = *step.op;
    step.name = op.name;
    step.operands = {op.operands[0]};
    step.table = draft_.value(op.operands[0]).table;
    step.is_bool = draft_.value(op.operands[0]).type.dtype == tensor::DType::kBool;
    std::vector<size_t> written;
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (draft_.value(op.results[i]).is_tensor) {
        written.push_back(i);
        step.results.push_back(op.results[i]);
      }
    }
    for (const LocalBlock& local : op.blocks) {
      std::vector<LocalId> returned;
      for (const size_t i : written) returned.push_back(local.results[i]);
      DraftBlock branch = block(local, returned);
      branch.results.clear();
      for (const size_t i : written) {
        branch.steps.push_back(make_copy(draft_, local.results[i], op.results[i]));
        branch.steps.back().location = op.location;
      }
      step.blocks.push_back(std::move(branch));
    }
    out.steps.push_back(std::move(step));
  }

  DraftStep effect(DraftStep step) {
    const LocalOp& op = *step.op;
    step.name = op.name;
    int view = 0;
    for (const LocalId id : op.results) {
      if (!draft_.value(id).is_tensor) continue;
      step.results.push_back(id);
      view = draft_.value(id).view;
    }
    if (step.results.empty() && !step.operands.empty()) view = draft_.value(step.operands[0]).view;
    const sharding::SubAxisSet mask = op.effect.every_device ? draft_.tables.view(view).all() : 0;
    step.table = draft_.tables.table(view, mask);
    return step;
  }

  Draft& draft_;
  Needed needed_;
  bool fuse_;
};

}  // namespace

LocalView::LocalView(const Draft& draft, const LocalOp& op) {
  for (const LocalId id : op.operands) operands.push_back(draft.program->value(id).type);
  for (const LocalId id : op.results) results.push_back(draft.program->value(id).type);
  view.operands = operands;
  view.results = results;
  view.attributes = &op.attributes;
  view.regions = op.regions;
  view.function = draft.program->function.get();
  view.location = &op.location;
}

LocalId Draft::add_like(LocalId like, const std::string& name) {
  DraftValue made = value(like);
  made.alias_of = -1;
  made.alias_map = kIdentity;
  made.constant = nullptr;
  made.argument = -1;
  made.name = name;
  values.push_back(std::move(made));
  return static_cast<LocalId>(values.size() - 1);
}

std::pair<LocalId, MapId> Draft::root(LocalId id) {
  MapId map = kIdentity;
  const TableId from = value(id).table;
  while (value(id).alias_of >= 0) {
    map = tables.compose(map, value(id).alias_map, from);
    id = value(id).alias_of;
  }
  return {id, map};
}

const ir::DenseAttr* splat_of(const Draft& draft, LocalId id) {
  const LocalOp* op = draft.value(id).constant;
  if (op == nullptr || op->kind != LocalKind::kConstant) return nullptr;
  const ir::Attribute* found = ir::find(op->attributes, "value");
  const auto* dense = found == nullptr ? nullptr : found->as<ir::DenseAttr>();
  if (dense == nullptr) throw core::Error("internal", "a constant without a value");
  return dense->splat || tensor::element_count(dense->type) == 1 ? dense : nullptr;
}

DraftStep make_fill(Draft& draft, LocalId splat, LocalId to) {
  const ir::DenseAttr dense = *splat_of(draft, splat);
  DraftStep step;
  step.name = "fill";
  step.results = {to};
  step.table = draft.value(to).table;
  const int64_t count = tensor::element_count(draft.value(to).type);
  const int64_t size = tensor::size_bytes(draft.value(to).type.dtype);
  constexpr int64_t kUnitElements = int64_t{1} << 16;
  step.kernel.unit_count = core::ceil_div(count, kUnitElements);
  step.kernel.bytes = static_cast<double>(count * size);
  step.kernel.run = [dense, count, size](const ops::KernelCall& call) {
    const int64_t start = call.begin * kUnitElements;
    const int64_t stop = std::min(count, call.end * kUnitElements);
    if (stop > start) kernels::fill_elements(call.results[0] + start * size, dense.bytes->data(), stop - start, size);
  };
  return step;
}

DraftStep make_copy(Draft& draft, LocalId from, LocalId to) {
  const LocalId source = draft.root(from).first;
  if (splat_of(draft, source) != nullptr) return make_fill(draft, source, to);
  DraftStep step;
  step.is_copy = true;
  step.name = "copy";
  step.operands = {from};
  step.results = {to};
  step.table = draft.value(to).table;
  const int64_t bytes = draft.value(to).bytes;
  constexpr int64_t kUnitBytes = int64_t{1} << 18;
  step.kernel.unit_count = core::ceil_div(bytes, kUnitBytes);
  step.kernel.bytes = 2.0 * static_cast<double>(bytes);
  step.kernel.run = [bytes](const ops::KernelCall& call) {
    const int64_t start = call.begin * kUnitBytes;
    const int64_t stop = std::min(bytes, call.end * kUnitBytes);
    if (stop > start && call.results[0] != call.operands[0]) {
      std::memcpy(call.results[0] + start, call.operands[0] + start, static_cast<size_t>(stop - start));
    }
  };
  return step;
}

void set_offsets(Draft& draft, DraftStep& step, LocalId id) {
  const DraftValue& value = draft.value(id);
  step.offset_sub_axes = value.dim_sub_axes;
  step.offset_sizes = value.type.dims;
  step.offset_view = value.view;
}

Draft make_draft(const partition::LocalProgram& program, bool fuse) {
  Draft draft(program, program.device_count());
  const std::vector<sharding::SubAxisSet> masks = widen(program);
  for (size_t i = 0; i < program.values.size(); ++i) {
    const partition::LocalValue& local = program.values[i];
    DraftValue made;
    made.is_tensor = local.type.is_tensor();
    made.view = local.view;
    made.varies = masks[i];
    made.name = local.name;
    made.table = draft.tables.table(made.view, made.varies);
    if (made.is_tensor) {
      made.type = local.type.tensor;
      made.logical_dims = local.logical_dims;
      made.dim_sub_axes = local.dim_sub_axes;
      made.bytes = tensor::byte_count(local.type.tensor);
    }
    draft.values.push_back(std::move(made));
  }
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    draft.value(program.arguments[i].value).argument = static_cast<int64_t>(i);
  }
  draft.body = Drafter(draft, fuse).block(program.body, program.body.results);
  // A constant of the plan cannot leave it: such results get bytes of their own.
  for (const LocalId id : program.body.results) {
    draft.results.push_back(id);
    if (draft.value(draft.root(id).first).constant == nullptr) continue;
    draft.results.back() = draft.add_like(id, "result");
    draft.body.steps.push_back(make_copy(draft, id, draft.results.back()));
  }
  draft.body.results = draft.results;
  return draft;
}

}  // namespace meshd::compile
