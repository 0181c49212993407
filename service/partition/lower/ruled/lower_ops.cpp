#include "service/partition/lower/ruled/lower_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "service/ops/rule_views.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/ruled/emit.h"
#include "service/partition/lower/ruled/halo_rule.h"
#include "service/partition/lower/ruled/identity.h"
#include "service/partition/lower/ruled/lower_halo.h"
#include "service/partition/lower/ruled/lower_partial.h"
#include "service/partition/lower/ruled/sharding_choice.h"

namespace meshd::partition {
namespace {

// True when the parts of a factor that is alone in its dimension differ in size.
bool is_uneven(const sharding::MeshView& view, const std::vector<int>& sub_axes, int64_t size) {
  return size % sharding::part_count(view, sub_axes) != 0;
}

// True when sums over dimensions that a halo is read along have parts of one size, so that nothing has to be masked.
bool sums_evenly(const ops::Halo& halo, const sharding::FactorRule& rule, const sharding::MeshView& view,
                 const FactorSubAxes& choice) {
  return std::none_of(halo.reads.begin(), halo.reads.end(), [&](const ops::HaloRead& read) {
    if (!read.summed_operand) return false;
    const int factor = rule.operands[*read.summed_operand][read.along_dim].front();
    return is_uneven(view, choice.sub_axes[static_cast<size_t>(factor)], read.along_size);
  });
}

// True when operand `number` has to be resharded only along dimensions of which the op reads its neighbours' rows.
// `overlaps`: factors that are sums over windows, which stay unsharded because windows overlap.
bool differs_along_permutations(const sharding::FactorRule& rule, size_t number, const ShardLayout& from,
                                const ShardLayout& to, const std::vector<bool>& unsharded,
                                const std::vector<bool>& overlaps) {
  if (from.view != to.view) return false;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    // Sharding further moves nothing.
    if (std::mismatch(from.dims[d].begin(), from.dims[d].end(), to.dims[d].begin(), to.dims[d].end()).first ==
        from.dims[d].end())
      continue;
    const std::vector<int>& factors = rule.operands[number][d];
    const bool permutes = std::any_of(factors.begin(), factors.end(), [&](int f) {
      const sharding::FactorKind kind = rule.factors[static_cast<size_t>(f)].kind;
      return kind == sharding::FactorKind::kPermutation || overlaps[static_cast<size_t>(f)] ||
             (kind == sharding::FactorKind::kPassThrough && unsharded[static_cast<size_t>(f)]);
    });
    if (!permutes) return false;
  }
  return true;
}

void reshard_returned(LoweringContext& context, ir::ValueId id) {
  const auto [begin, end] = context.returned.equal_range(id);
  for (auto entry = begin; entry != end; ++entry) {
    const ReturnedValue& returned = entry->second;
    const LocalId made = context.local(id);
    if (returned.layout.view == context.builder.layout(made).view)
      context.builder.reshard(made, returned.layout, context.main.location, returned.reason);
  }
}

void lower_replicated(LoweringContext& context, const ir::Op& op, const ops::OpDef& def, const Scope& scope) {
  std::vector<LocalId> operands;
  std::vector<ShardLayout> layouts;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    operands.push_back(reshard_to_replicated(context, op.operands[i], scope, op.location,
                                             fmt::format("operand {} of {}", i, op.name)));
  }
  for (const ir::ValueId result : op.results)
    layouts.push_back(replicated(context.main.type_of(result).rank(), scope.view));
  emit_op(context, op, def, std::move(operands), layouts, 0);
}

// How an op is lowered: the rule that holds (its own, or that of a halo), and the sub-axes of its factors.
struct RuledChoice {
  sharding::FactorRule rule;
  std::vector<bool> unsharded;
  std::vector<bool> overlaps;  ///< factors that are sums over windows
  const ops::Halo* halo = nullptr;
  FactorSubAxes sub_axes;
};

// Operands in their current layouts, results in those that propagation found. Values inside a manual computation have
// the fixed view `tied_view`.
std::vector<OpTensor> op_tensors_of(const LoweringContext& context, const ir::Op& op, const Scope& scope,
                                    std::optional<int>& tied_view) {
  std::vector<OpTensor> out;
  for (const ir::ValueId id : op.operands) {
    const ShardedType& type = context.builder.type(context.local(id));
    out.push_back({context.main.type_of(id).dims(), type.layout});
    if (type.outer() != 0) tied_view = type.layout.view;
  }
  for (const ir::ValueId id : op.results) out.push_back({context.main.type_of(id).dims(), wanted(context, id, scope)});
  for (OpTensor& tensor : out) {
    if (tied_view && tensor.layout.view != *tied_view)
      tensor.layout = replicated(static_cast<int64_t>(tensor.dims.size()), *tied_view);
  }
  return out;
}

// Steps 2 to 4.
RuledChoice choose(const LoweringContext& context, const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                   const sharding::FactorRule& own, const std::optional<ops::Combine>& combine,
                   std::vector<ops::Halo>& halos, std::span<const OpTensor> op_tensors, std::optional<int> tied_view,
                   const Scope& scope) {
  const Builder& builder = context.builder;
  RuledChoice out{own, unsharded_factors(context, op, def, view, own, own.factors.size(), combine), {}, nullptr, {}};
  out.overlaps.resize(out.unsharded.size());
  for (size_t f = 0; f < out.overlaps.size(); ++f) {
    out.overlaps[f] = own.factors[f].kind == sharding::FactorKind::kReduction && def.keeps_unsharded != nullptr &&
                      def.keeps_unsharded(view, own, f);
  }
  for (const ops::Halo& way : halos) keep_moved_unsharded(way, own, out.unsharded);
  std::erase_if(halos, [&](ops::Halo& way) { return !keep_fetchable(context, way, op, combine); });
  MovedBytes least;
  std::tie(out.sub_axes, least) =
      least_moving(context, {op, own, op_tensors, out.unsharded, combine, nullptr, tied_view}, scope);
  // Rows of neighbours are fetched where that moves less than replicating the dimension.
  for (const ops::Halo& way : halos) {
    const sharding::FactorRule fetching = halo_rule(way, own);
    const std::vector<bool> unsharded =
        unsharded_factors(context, op, def, view, fetching, own.factors.size(), combine);
    auto [other, moved] = least_moving(context, {op, fetching, op_tensors, unsharded, combine, &way, tied_view}, scope);
    if (moved.all >= least.all || other.view != out.sub_axes.view ||
        !sums_evenly(way, fetching, builder.view(other.view), other) ||
        parallel_parts(builder.view(other.view), other) < parallel_parts(builder.view(other.view), out.sub_axes))
      continue;
    least = moved;
    out = {fetching, unsharded, std::vector<bool>(unsharded.size()), &way, std::move(other)};
  }
  return out;
}

// Step 5. True in `shifted` when an operand was resharded because the op reads its neighbours' rows.
std::vector<LocalId> reshard_operands(LoweringContext& context, const ir::Op& op, const RuledChoice& choice,
                                      const std::optional<ops::Combine>& combine, std::span<const OpTensor> op_tensors,
                                      bool& shifted) {
  Builder& builder = context.builder;
  const sharding::MeshView& mesh_view = builder.view(choice.sub_axes.view);
  const sharding::FactorRule& rule = choice.rule;
  std::vector<int> to_mask;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == sharding::FactorKind::kReduction &&
        is_uneven(mesh_view, choice.sub_axes.sub_axes[f], rule.factors[f].size))
      to_mask.push_back(static_cast<int>(f));
  }
  std::vector<LocalId> operands;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string reason = fmt::format("operand {} of {}", i, op.name);
    const LocalId before = context.local(op.operands[i]);
    ShardLayout to = layout_of(choice.sub_axes, rule.operands[i]);
    if (choice.halo != nullptr)
      to = fetched_from(*choice.halo, i, mesh_view, op_tensors[i], to,
                        builder.sources().rematerialisation(before) != nullptr);
    LocalId operand = builder.reshard(before, to, op.location, reason);
    if (operand != before && builder.is_last_reshard(operand)) {
      const ShardLayout from = builder.layout(builder.last().operands[0]);
      builder.last().reads_neighbours |=
          differs_along_permutations(rule, i, from, to, choice.unsharded, choice.overlaps);
      shifted = shifted || builder.last().reads_neighbours;
    }
    const bool padded =
        std::any_of(to_mask.begin(), to_mask.end(), [&](int f) { return has_factor(rule.operands[i], f); });
    if (const int filled = padded ? combine->operand_results[i] : -1; filled >= 0) {
      const tensor::DType dtype = builder.type(operand).local.dtype;
      operand = mask_padding(builder, operand, *identity_element(combine->ops[static_cast<size_t>(filled)], dtype),
                             op.location, reason);
    }
    operands.push_back(operand);
  }
  return operands;
}

}  // namespace

void lower_rematerialised(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const ops::OpDef& def = ops::op(op.code);
  const ir::ValueId id = op.results.front();
  LocalOp made;
  if (ops::role_of(def.body) == ops::Structural::kConstant) {
    made.kind = LocalKind::kConstant;
  } else {
    made.def = &def;
  }
  made.name = op.name;
  made.attributes = op.attributes;
  made.location = op.location;
  const LocalId value = context.add_value(id, wanted(context, id, scope), 0);
  made.results = {value};
  context.builder.sources().rematerialise_by(value, made);
  context.builder.append(std::move(made));
  context.define(id, value);
}

void lower_ruled(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  const ops::OpDef& def = ops::op(op.code);
  ops::OpInstance global(context.main, op);
  std::vector<const ir::Op*> definitions;
  for (const ir::ValueId id : op.operands) definitions.push_back(context.uses.definitions[static_cast<size_t>(id)]);
  global.view.op = &op;
  global.view.definitions = definitions;
  const ops::OpView& view = global.view;
  const auto rule = ops::lowering_rule_of(def, view);

  const Builder::Mark mark = builder.mark();
  if (!rule) {
    lower_replicated(context, op, def, scope);
    return builder.mark_unruled(mark);
  }
  const std::optional<ops::Combine> combine = def.combine != nullptr ? def.combine(view) : std::nullopt;
  std::vector<ops::Halo> halos = halos_of(def, view);
  std::optional<int> tied_view;
  const std::vector<OpTensor> op_tensors = op_tensors_of(context, op, scope, tied_view);
  const RuledChoice choice = choose(context, op, def, view, *rule, combine, halos, op_tensors, tied_view, scope);

  sharding::SubAxisSet partial = 0;
  for (size_t f = 0; f < choice.rule.factors.size(); ++f) {
    if (choice.rule.factors[f].kind == sharding::FactorKind::kReduction)
      partial |= mask_of(choice.sub_axes.sub_axes[f]);
  }
  bool shifted = false;
  std::vector<LocalId> operands = reshard_operands(context, op, choice, combine, op_tensors, shifted);
  // The rule of the text, by which shardings have propagated, is not the kernel's: what moves here is for that.
  if (!rule->is_custom && ops::has_sharding_rule(view)) builder.mark_unruled(mark);
  std::vector<ShardLayout> layouts;
  for (const sharding::TensorFactors& factors : choice.rule.results)
    layouts.push_back(layout_of(choice.sub_axes, factors));
  if (partial != 0) begin_once(context, op, *combine, partial, choice.sub_axes.view, operands);
  if (partial == 0 || !combine->is_pick) {
    if (choice.halo != nullptr) {
      emit_fetching(context, *choice.halo, op, def, view, operands, layouts, partial);
    } else {
      emit_op(context, op, def, operands, layouts, partial);
    }
  } else if (!emit_on_shard(context, op, def, operands, layouts, partial)) {
    builder.rewind(mark);
    return lower_replicated(context, op, def, scope);
  }
  if (partial != 0) combine_partials(context, op, *combine, partial, scope);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const bool is_elsewhere = layouts[i] != op_tensors[op.operands.size() + i].layout;
    if (shifted || (choice.halo != nullptr && is_elsewhere))
      builder.sources().mark_shifted(context.local(op.results[i]));
  }

  // A broadcast of a scalar can be computed again in any layout.
  const bool of_scalars =
      !op.operands.empty() && std::all_of(op.operands.begin(), op.operands.end(), [&](ir::ValueId id) {
        return context.main.type_of(id).rank() == 0 && builder.type(context.local(id)).varies == 0;
      });
  if (of_scalars && op.results.size() == 1 && op.regions.empty() && global.results.front().rank() > 0 && partial == 0)
    builder.sources().rematerialise_by(context.local(op.results.front()), builder.last());
  for (const ir::ValueId result : op.results) reshard_returned(context, result);
}

}  // namespace meshd::partition
