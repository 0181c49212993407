#include "service/partition/lower/ruled/sharding_choice.h"

#include <algorithm>
#include <map>

#include "service/partition/lower/ruled/halo_rule.h"
#include "service/partition/lower/ruled/identity.h"
#include "service/partition/lower/ruled/lower_partial.h"

namespace meshd::partition {
namespace {

// True when a manual computation gets the value in this layout whatever the op does: it moves there once, for both.
bool is_moved_anyway(const LoweringContext& context, ir::ValueId id, const ShardLayout& to) {
  const auto read = context.manual_operands.find(id);
  return read != context.manual_operands.end() && context.builder.sources().is_outermost() &&
         std::find(read->second.begin(), read->second.end(), to) != read->second.end();
}

// Estimate of the bytes that a device receives under a choice: for operands, for partial results, and for results that
// are read in another layout.
MovedBytes moved_bytes(const LoweringContext& context, const ChoiceOf& of, const FactorSubAxes& choice,
                       const Scope& scope) {
  const ir::Op& op = of.op;
  const sharding::FactorRule& rule = of.rule;
  const ops::Halo* halo = of.halo;
  const std::span<const OpTensor> op_tensors = of.op_tensors;
  const sharding::MeshView& mesh_view = context.builder.view(choice.view);
  MovedBytes moved;
  sharding::SubAxisSet partial = 0;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == sharding::FactorKind::kReduction) partial |= mask_of(choice.sub_axes[f]);
  }
  std::vector<ShardLayout> layouts;
  std::vector<size_t> read;
  std::map<ir::ValueId, std::vector<size_t>> seen;  // operands of a value: it is resharded once for those of a layout
  const auto bytes_of = [&](size_t i) {
    return static_cast<double>(tensor::size_bytes(context.main.type_of(op.operands[i]).dtype()));
  };
  for (size_t i = 0; i < op.operands.size(); ++i) {
    layouts.push_back(layout_of(choice, rule.operands[i]));
    if (context.builder.sources().rematerialisation(context.local(op.operands[i])) != nullptr) continue;
    read.push_back(i);
    if (halo != nullptr) continue;
    std::vector<size_t>& same = seen[op.operands[i]];
    if (std::any_of(same.begin(), same.end(), [&](size_t k) { return layouts[k] == layouts[i]; })) continue;
    same.push_back(i);
    if (is_moved_anyway(context, op.operands[i], layouts[i])) continue;
    const double bytes = context.builder.lacking(context.local(op.operands[i]), layouts[i]) * bytes_of(i);
    moved.all += bytes;
    if (context.uses.counts[static_cast<size_t>(op.operands[i])] > 1) moved.alone -= bytes;
  }
  if (halo != nullptr) {
    // The operands of a move have one dtype and are fetched by one exchange.
    const size_t together = halo->is_move ? std::max<size_t>(read.size(), 1) : 1;
    for (size_t at = 0; at < read.size(); at += together) {
      moved.all += fetched_elements(*halo, std::span(read).subspan(at, together), mesh_view, op_tensors, layouts) *
                   bytes_of(read[at]);
    }
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (context.uses.counts[static_cast<size_t>(op.results[i])] == 0) continue;
    const ShardLayout made = layout_of(choice, rule.results[i]);
    const ShardLayout to = wanted_by_reader(context, op.results[i], scope);
    double elements = 1;
    for (const int64_t size : local_dims(mesh_view, op_tensors[op.operands.size() + i].dims, made))
      elements *= static_cast<double>(size);
    double lacking = lacking_elements(context.builder.view(to.view), op_tensors[op.operands.size() + i].dims, made, to);
    const auto bytes = static_cast<double>(tensor::size_bytes(context.main.type_of(op.results[i]).dtype()));
    if (partial != 0) {
      const auto ways = static_cast<double>(mesh_view.distinct_count(partial));
      const sharding::SubAxisSet scattered = to.view == made.view ? partial & to.mask() : 0;
      const auto kept = static_cast<double>(mesh_view.distinct_count(scattered));
      lacking += (elements - elements / ways) + (elements / kept - elements / ways);
    }
    moved.all += lacking * bytes;
  }
  moved.alone += moved.all;
  return moved;
}

}  // namespace

bool has_factor(const sharding::TensorFactors& tensor, int factor) {
  return std::any_of(tensor.begin(), tensor.end(), [&](const std::vector<int>& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

std::vector<bool> unsharded_factors(const LoweringContext& context, const ir::Op& op, const ops::OpDef& def,
                                    const ops::OpView& view, const sharding::FactorRule& rule, size_t own,
                                    const std::optional<ops::Combine>& combine) {
  // A reduction is sharded only where partial results can be combined and padding can be masked.
  bool may_reduce = combine.has_value();
  for (size_t i = 0; i < op.operands.size() && may_reduce && !combine->is_pick; ++i) {
    const int result = combine->operand_results[i];
    const ir::Type& type = context.main.type_of(op.operands[i]);
    may_reduce = result < 0 || identity_element(combine->ops[static_cast<size_t>(result)], type.dtype()).has_value();
  }
  // Where a start value counts, sums of few bits stay in one order: each partial one would be rounded.
  for (size_t r = 0; may_reduce && r < combine->starts.size(); ++r) {
    if (combine->starts[r] < 0) continue;
    const ir::ValueId start = op.operands[static_cast<size_t>(combine->starts[r])];
    const tensor::DType dtype = context.main.type_of(start).dtype();
    const bool is_coarse = tensor::is_float(dtype) && tensor::size_bytes(dtype) < 4;
    may_reduce = !is_coarse || !begins_once(context, *combine, r, context.local(start));
  }
  std::vector<bool> unsharded(rule.factors.size());
  for (size_t f = 0; f < unsharded.size(); ++f) {
    const sharding::FactorKind kind = rule.factors[f].kind;
    const auto has = [f](const sharding::TensorFactors& tensor) { return has_factor(tensor, static_cast<int>(f)); };
    const bool in_operands = std::any_of(rule.operands.begin(), rule.operands.end(), has);
    const bool in_results = std::any_of(rule.results.begin(), rule.results.end(), has);
    const bool one_sided = in_operands ? !in_results : !def.new_dims_may_be_sharded;
    unsharded[f] = kind == sharding::FactorKind::kNeedReplication || kind == sharding::FactorKind::kPermutation ||
                   (kind == sharding::FactorKind::kReduction && (!may_reduce || rule.factors[f].size == 1)) ||
                   (kind == sharding::FactorKind::kPassThrough && one_sided) ||
                   (f < own && def.keeps_unsharded != nullptr && def.keeps_unsharded(view, rule, f));
  }
  return unsharded;
}

int64_t parallel_parts(const sharding::MeshView& view, const FactorSubAxes& choice) {
  sharding::SubAxisSet all = 0;
  for (const std::vector<int>& sub_axes : choice.sub_axes) all |= mask_of(sub_axes);
  return view.distinct_count(all);
}

std::pair<FactorSubAxes, MovedBytes> least_moving(const LoweringContext& context, const ChoiceOf& of,
                                                  const Scope& scope) {
  const std::span<const OpTensor> op_tensors = of.op_tensors;
  const std::vector<sharding::MeshView>& views = context.builder.views().views();
  FactorSubAxes choice = choose_factor_sub_axes(of.rule, op_tensors, views, of.unsharded, scope.manual);
  if (of.tied_view) choice.view = *of.tied_view;
  MovedBytes least = moved_bytes(context, of, choice, scope);
  if (least.all == 0) return {std::move(choice), least};
  // The greedy choice follows the largest tensors; where it moves something, another may move less.
  const int64_t parts = parallel_parts(context.builder.view(choice.view), choice);
  const auto look_from = [&](std::span<const OpTensor> from, const std::vector<bool>& unsharded,
                             bool may_be_less_parallel) {
    for (FactorSubAxes& other : other_choices(of.rule, from, views, unsharded, scope.manual)) {
      if (other.view != choice.view) continue;
      if (!may_be_less_parallel && parallel_parts(context.builder.view(other.view), other) < parts) continue;
      const MovedBytes moved = moved_bytes(context, of, other, scope);
      if (!(moved < least)) continue;
      least = moved;
      choice = std::move(other);
    }
  };
  // The layouts that propagation found for operands are candidates too: copies may have them already.
  std::vector<OpTensor> as_wanted(op_tensors.begin(), op_tensors.end());
  for (size_t i = 0; i < of.op.operands.size(); ++i) {
    const ShardLayout layout = wanted(context, of.op.operands[i], scope);
    if (layout.view == op_tensors[i].layout.view) as_wanted[i].layout = layout;
  }
  // What propagation found for all of them may be less parallel: the text's author counts on it.
  const auto look = [&](const std::vector<bool>& unsharded, bool may_be_less_parallel) {
    look_from(op_tensors, unsharded, may_be_less_parallel);
    look_from(as_wanted, unsharded, true);
  };
  look(of.unsharded, false);
  // Ops that only read their operands once: the bytes moved cost more than the work.
  const bool is_light = of.combine && (of.combine->is_pick || of.combine->starts.front() >= 0);
  if (!is_light) return {std::move(choice), least};
  look(of.unsharded, true);
  std::vector<bool> no_partials = of.unsharded;
  for (size_t f = 0; f < of.rule.factors.size(); ++f) {
    if (of.rule.factors[f].kind == sharding::FactorKind::kReduction) no_partials[f] = true;
  }
  look(no_partials, true);
  return {std::move(choice), least};
}

}  // namespace meshd::partition
