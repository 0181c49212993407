// Lowers an op with a factor rule: which factors are sharded by which sub-axes, what is resharded, what is reduced.
//
// Invariant: where no way to lower the op on its shards exists, the builder is rewound and the op runs replicated.
//
// Steps of Lowering::lower_ruled():
//   1. Ask the row for the factor rule of this instance. Without one, lower_whole: replicate the operands.
//   2. uncut_factors: the factors that stay unsharded. These are need-replication and permutation factors, reductions
//      whose partial results cannot be combined or whose padding cannot be masked, pass-through factors that only
//      operands have, or only results (but new_dims_may_be_cut), and those that the row's keeps_whole names.
//   3. least_moving: the greedy choice of factor_choice.h. Where it moves bytes, other candidates are compared by
//      moved_bytes. One that uses fewer devices counts only for ops that read their operands once (reduce, gather).
//   4. The same with each halo of the row (lower_halo.h). A halo wins where it moves fewer bytes, is as parallel, and
//      sums over parts of one size.
//   5. Reshard the operands to the choice. Where a sharded reduction factor is uneven, mask the padding with the
//      identity of the reducer.
//   6. begin_once: start values of a sharded reduction count on the first shard only.
//   7. Append the op on local types: emit, emit_fetching behind a halo exchange, or emit_on_shard for picks (gather)
//      and for plain ops. OpDef::localize gives the local attributes.
//   8. combine_partials: all-reduce over the sub-axes of sharded reduction factors. Where propagation wants the result
//      sharded by these sub-axes, a slice follows, and both together are a reduce-scatter.
//   9. Reshard results that @main returns, and mark broadcasts of scalars as rematerialisable.
//
// Example, mesh x=2, y=4: dot_general of 8x16 [{}, {x}] and 16x8 [{x}, {}], k=16 a reduction factor.
//   Step 3: k={x}, no reshard.  Step 7: 8x8 . 8x8 -> 8x8 on each device, partial over x.
//   Step 8, result [{}, {}]: all_reduce, a device receives 2 (256 - 128) bytes.
//   Step 8, result [{x}, {}]: reduce_scatter to 4x8, a device receives 256 - 128 bytes.
#include <algorithm>
#include <variant>

#include "service/partition/lower/factor_choice.h"
#include "service/partition/lower/identity.h"
#include "service/partition/lower/lower_halo.h"
#include "service/partition/lower/lowering.h"

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

// The number of parts into which a choice shards the op's work.
int64_t parallel_parts(const sharding::MeshView& view, const FactorSubAxes& choice) {
  sharding::SubAxisSet all = 0;
  for (const std::vector<int>& sub_axes : choice.sub_axes) all |= mask_of(sub_axes);
  return view.distinct_count(all);
}

// True when operand `number` has to be resharded only along dimensions of which the op reads its neighbours' rows.
// `overlaps`: factors that are sums over windows, which stay unsharded because windows overlap.
bool differs_along_permutations(const sharding::FactorRule& rule, size_t number, const ShardLayout& from,
                                const ShardLayout& to, const std::vector<bool>& uncut,
                                const std::vector<bool>& overlaps) {
  if (from.view != to.view) return false;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    // Cutting further moves nothing.
    if (std::mismatch(from.dims[d].begin(), from.dims[d].end(), to.dims[d].begin(), to.dims[d].end()).first ==
        from.dims[d].end())
      continue;
    const std::vector<int>& factors = rule.operands[number][d];
    const bool permutes = std::any_of(factors.begin(), factors.end(), [&](int f) {
      const sharding::FactorKind kind = rule.factors[static_cast<size_t>(f)].kind;
      return kind == sharding::FactorKind::kPermutation || overlaps[static_cast<size_t>(f)] ||
             (kind == sharding::FactorKind::kPassThrough && uncut[static_cast<size_t>(f)]);
    });
    if (!permutes) return false;
  }
  return true;
}

bool has_factor(const sharding::TensorFactors& tensor, int factor) {
  return std::any_of(tensor.begin(), tensor.end(), [&](const std::vector<int>& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

}  // namespace

void Lowering::lower_made(const ir::Op& op, const ops::OpDef* def, const Scope& scope) {
  const ir::ValueId id = op.results.front();
  LocalOp made;
  if (def == nullptr) made.kind = LocalKind::kConstant;
  made.def = def;
  made.name = op.name;
  made.attributes = op.attributes;
  made.location = op.location;
  const LocalId value = builder_.add_value(module_main_.type_of(id).tensor, wanted(id, scope), 0,
                                           module_main_.values[static_cast<size_t>(id)].name);
  made.results = {value};
  builder_.set_recipe(value, made);
  builder_.append(std::move(made));
  define(id, value);
}

std::vector<bool> Lowering::uncut_factors(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                          const sharding::FactorRule& rule, size_t own,
                                          const std::optional<ops::Combine>& combine) const {
  // A reduction is cut only where partial results can be put together and padding can be masked.
  bool may_reduce = combine.has_value();
  for (size_t i = 0; i < op.operands.size() && may_reduce && !combine->is_pick; ++i) {
    const int result = combine->operand_results[i];
    const ir::Type& type = module_main_.type_of(op.operands[i]);
    may_reduce = result < 0 || identity_element(combine->ops[static_cast<size_t>(result)], type.dtype()).has_value();
  }
  // Where a start value counts, sums of few bits stay in one order: each partial one would be rounded.
  for (size_t r = 0; may_reduce && r < combine->starts.size(); ++r) {
    if (combine->starts[r] < 0) continue;
    const ir::ValueId start = op.operands[static_cast<size_t>(combine->starts[r])];
    const tensor::DType dtype = module_main_.type_of(start).dtype();
    const bool is_coarse = tensor::is_float(dtype) && tensor::size_bytes(dtype) < 4;
    may_reduce = !is_coarse || !begins_once(*combine, r, local(start));
  }
  std::vector<bool> uncut(rule.factors.size());
  for (size_t f = 0; f < uncut.size(); ++f) {
    const sharding::FactorKind kind = rule.factors[f].kind;
    const auto has = [f](const sharding::TensorFactors& tensor) { return has_factor(tensor, static_cast<int>(f)); };
    const bool in_operands = std::any_of(rule.operands.begin(), rule.operands.end(), has);
    const bool in_results = std::any_of(rule.results.begin(), rule.results.end(), has);
    const bool one_sided = in_operands ? !in_results : !def.new_dims_may_be_cut;
    uncut[f] = kind == sharding::FactorKind::kNeedReplication || kind == sharding::FactorKind::kPermutation ||
               (kind == sharding::FactorKind::kReduction && (!may_reduce || rule.factors[f].size == 1)) ||
               (kind == sharding::FactorKind::kPassThrough && one_sided) ||
               (f < own && def.keeps_whole != nullptr && def.keeps_whole(view, rule, f));
  }
  return uncut;
}

MovedBytes Lowering::moved_bytes(const ir::Op& op, const sharding::FactorRule& rule,
                                 std::span<const OpTensor> op_tensors, const FactorSubAxes& choice, const Scope& scope,
                                 const ops::Halo* halo) const {
  const sharding::MeshView& mesh_view = builder_.view(choice.view);
  MovedBytes moved;
  sharding::SubAxisSet partial = 0;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == sharding::FactorKind::kReduction) partial |= mask_of(choice.sub_axes[f]);
  }
  std::vector<ShardLayout> layouts;
  std::vector<size_t> read;
  const auto bytes_of = [&](size_t i) {
    return static_cast<double>(tensor::size_bytes(module_main_.type_of(op.operands[i]).dtype()));
  };
  for (size_t i = 0; i < op.operands.size(); ++i) {
    layouts.push_back(layout_of(choice, rule.operands[i]));
    if (builder_.has_recipe(local(op.operands[i]))) continue;
    read.push_back(i);
    if (halo != nullptr) continue;
    const double bytes = builder_.lacking(local(op.operands[i]), layouts[i]) * bytes_of(i);
    moved.all += bytes;
    if (use_counts_[static_cast<size_t>(op.operands[i])] > 1) moved.alone -= bytes;
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
    if (use_counts_[static_cast<size_t>(op.results[i])] == 0) continue;
    const ShardLayout made = layout_of(choice, rule.results[i]);
    const ShardLayout to = wanted(op.results[i], scope);
    double elements = 1;
    for (const int64_t size : local_dims(mesh_view, op_tensors[op.operands.size() + i].dims, made))
      elements *= static_cast<double>(size);
    double lacking = lacking_elements(mesh_view, op_tensors[op.operands.size() + i].dims, made, to);
    const auto bytes = static_cast<double>(tensor::size_bytes(module_main_.type_of(op.results[i]).dtype()));
    if (partial != 0) {
      const auto ways = static_cast<double>(mesh_view.distinct_count(partial));
      const auto kept = static_cast<double>(mesh_view.distinct_count(partial & to.mask()));
      lacking += (elements - elements / ways) + (elements / kept - elements / ways);
    }
    moved.all += lacking * bytes;
  }
  moved.alone += moved.all;
  return moved;
}

void Lowering::lower_whole(const ir::Op& op, const ops::OpDef& def, const Scope& scope) {
  std::vector<LocalId> operands;
  std::vector<ShardLayout> layouts;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    operands.push_back(
        reshard_to_replicated(op.operands[i], scope, op.location, "operand " + std::to_string(i) + " of " + op.name));
  }
  for (const ir::ValueId result : op.results)
    layouts.push_back(replicated(module_main_.type_of(result).rank(), scope.view));
  emit(op, def, std::move(operands), layouts, 0);
}

bool Lowering::is_plain(const LocalOp& op) const {
  const auto* kernel = op.def == nullptr ? nullptr : std::get_if<ops::LocalKernel>(&op.def->body);
  if (kernel == nullptr) return true;
  const auto is_cut = [&](LocalId id) { return builder_.layout(id).mask() != 0; };
  if (std::none_of(op.results.begin(), op.results.end(), is_cut) &&
      std::none_of(op.operands.begin(), op.operands.end(), is_cut))
    return true;
  // meshd.* attributes are in no dialect.
  for (const auto& [name, value] : op.attributes) {
    if (name.starts_with("meshd.")) return false;
  }
  std::vector<ir::Type> operands, results;
  for (const LocalId id : op.operands) operands.push_back(builder_.value(id).local_type());
  for (const LocalId id : op.results) results.push_back(builder_.value(id).local_type());
  return !kernel->prepare({operands, results, &op.attributes, op.regions, &module_main_, &op.location}).uses_offsets;
}

std::pair<FactorSubAxes, MovedBytes> Lowering::least_moving(const ir::Op& op, const sharding::FactorRule& rule,
                                                            std::span<const OpTensor> op_tensors,
                                                            const std::vector<bool>& uncut,
                                                            const std::optional<ops::Combine>& combine,
                                                            std::optional<int> tied_view, const Scope& scope,
                                                            const ops::Halo* halo) const {
  const std::vector<sharding::MeshView>& views = builder_.views().views();
  FactorSubAxes choice = choose_factor_sub_axes(rule, op_tensors, views, uncut, scope.manual);
  if (tied_view) choice.view = *tied_view;
  MovedBytes least = moved_bytes(op, rule, op_tensors, choice, scope, halo);
  if (least.all == 0) return {std::move(choice), least};
  // The greedy choice follows the largest tensors; where it moves something, another may move less.
  const int64_t parts = parallel_parts(builder_.view(choice.view), choice);
  const auto look_from = [&](std::span<const OpTensor> from, const std::vector<bool>& unsharded,
                             bool may_be_less_parallel) {
    for (FactorSubAxes& other : other_choices(rule, from, views, unsharded, scope.manual)) {
      if (other.view != choice.view) continue;
      if (!may_be_less_parallel && parallel_parts(builder_.view(other.view), other) < parts) continue;
      const MovedBytes moved = moved_bytes(op, rule, op_tensors, other, scope, halo);
      if (!(moved < least)) continue;
      least = moved;
      choice = std::move(other);
    }
  };
  // The layouts that propagation found for operands are candidates too: copies may have them already.
  std::vector<OpTensor> as_wanted(op_tensors.begin(), op_tensors.end());
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ShardLayout layout = wanted(op.operands[i], scope);
    if (layout.view == op_tensors[i].layout.view) as_wanted[i].layout = layout;
  }
  const auto look = [&](const std::vector<bool>& unsharded, bool may_be_less_parallel) {
    look_from(op_tensors, unsharded, may_be_less_parallel);
    look_from(as_wanted, unsharded, may_be_less_parallel);
  };
  look(uncut, false);
  // Ops that only read their operands once: the bytes moved cost more than the work.
  const bool is_light = combine && (combine->is_pick || combine->starts.front() >= 0);
  if (!is_light) return {std::move(choice), least};
  look(uncut, true);
  std::vector<bool> no_partials = uncut;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == sharding::FactorKind::kReduction) no_partials[f] = true;
  }
  look(no_partials, true);
  return {std::move(choice), least};
}

void Lowering::lower_ruled(const ir::Op& op, const ops::OpDef& def, const Scope& scope) {
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  const std::vector<const ir::Op*> definitions = definitions_of(op.operands);
  const ops::OpView view{operand_types, result_types, &op.attributes, op.regions, &module_main_,
                         &op.location,  &op,          definitions};
  auto rule = ops::rule_of(def, view);

  const Builder::Mark mark = builder_.mark();
  if (!rule) {
    lower_whole(op, def, scope);
    return builder_.mark_unruled(mark);
  }
  std::vector<LocalId> operands;

  std::optional<ops::Combine> combine = def.combine != nullptr ? def.combine(view) : std::nullopt;
  // A rule that the text gives does not tell which shard contributes which element.
  if (combine && combine->is_pick && rule->is_custom) combine.reset();
  std::vector<bool> uncut = uncut_factors(op, def, view, *rule, rule->factors.size(), combine);
  std::vector<bool> overlaps(uncut.size());
  for (size_t f = 0; f < uncut.size(); ++f) {
    overlaps[f] = rule->factors[f].kind == sharding::FactorKind::kReduction && def.keeps_whole != nullptr &&
                  def.keeps_whole(view, *rule, f);
  }
  std::vector<ops::Halo> halos = halos_of(def, view);
  for (const ops::Halo& way : halos) keep_whole_what_moves(way, *rule, uncut);
  std::erase_if(halos, [&](ops::Halo& way) { return !keep_fetchable(way, op, combine); });
  std::vector<OpTensor> op_tensors;
  for (size_t i = 0; i < op.operands.size(); ++i)
    op_tensors.push_back({operand_types[i].dims(), builder_.layout(local(op.operands[i]))});
  for (size_t i = 0; i < op.results.size(); ++i)
    op_tensors.push_back({result_types[i].dims(), wanted(op.results[i], scope)});
  // Values inside a manual computation cannot change their view.
  int view_number = scope.view;
  for (const ir::ValueId operand : op.operands) {
    if (builder_.type(local(operand)).outer() != 0) view_number = builder_.layout(local(operand)).view;
  }
  const bool tied = std::any_of(op.operands.begin(), op.operands.end(),
                                [&](ir::ValueId id) { return builder_.type(local(id)).outer() != 0; });
  if (tied) {
    for (OpTensor& op_tensor : op_tensors) {
      if (op_tensor.layout.view != view_number)
        op_tensor.layout = replicated(static_cast<int64_t>(op_tensor.dims.size()), view_number);
    }
  }
  const std::optional<int> tied_view = tied ? std::optional(view_number) : std::nullopt;
  auto [choice, least] = least_moving(op, *rule, op_tensors, uncut, combine, tied_view, scope, nullptr);
  // Rows of neighbours are fetched where that moves less than replicating the dimension.
  const ops::Halo* halo = nullptr;
  for (const sharding::FactorRule own = *rule; const ops::Halo& way : halos) {
    const sharding::FactorRule fetching = halo_rule(way, own);
    const std::vector<bool> fetching_uncut = uncut_factors(op, def, view, fetching, own.factors.size(), combine);
    auto [other, moved] = least_moving(op, fetching, op_tensors, fetching_uncut, combine, tied_view, scope, &way);
    if (moved.all >= least.all || other.view != choice.view ||
        !sums_evenly(way, fetching, builder_.view(other.view), other) ||
        parallel_parts(builder_.view(other.view), other) < parallel_parts(builder_.view(choice.view), choice))
      continue;
    halo = &way;
    rule = fetching;
    uncut = fetching_uncut;
    overlaps.assign(uncut.size(), false);
    choice = std::move(other);
    least = moved;
  }
  const sharding::MeshView& mesh_view = builder_.view(choice.view);

  sharding::SubAxisSet partial = 0;
  std::vector<int> to_mask;
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    if (rule->factors[f].kind != sharding::FactorKind::kReduction) continue;
    partial |= mask_of(choice.sub_axes[f]);
    if (is_uneven(mesh_view, choice.sub_axes[f], rule->factors[f].size)) to_mask.push_back(static_cast<int>(f));
  }
  bool shifted = false;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string reason = "operand " + std::to_string(i) + " of " + op.name;
    const LocalId before = local(op.operands[i]);
    ShardLayout to = layout_of(choice, rule->operands[i]);
    if (halo) to = fetched_from(*halo, i, mesh_view, op_tensors[i], to, builder_.has_recipe(before));
    LocalId operand = builder_.reshard(before, to, op.location, reason);
    if (operand != before && builder_.last().kind == LocalKind::kReshard && builder_.last().results[0] == operand) {
      const ShardLayout from = builder_.layout(builder_.last().operands[0]);
      builder_.last().reads_neighbours |= differs_along_permutations(*rule, i, from, to, uncut, overlaps);
      shifted = shifted || builder_.last().reads_neighbours;
    }
    const bool padded =
        std::any_of(to_mask.begin(), to_mask.end(), [&](int f) { return has_factor(rule->operands[i], f); });
    if (const int filled = padded ? combine->operand_results[i] : -1; filled >= 0) {
      const auto fill = identity_element(combine->ops[static_cast<size_t>(filled)], operand_types[i].dtype());
      operand = builder_.mask(operand, *fill, op.location, reason);
    }
    operands.push_back(operand);
  }
  std::vector<ShardLayout> layouts;
  for (const sharding::TensorFactors& factors : rule->results) layouts.push_back(layout_of(choice, factors));
  if (partial != 0) begin_once(op, *combine, partial, choice.view, operands);
  const Builder::Mark before_op = builder_.mark();
  const auto is_all_plain = [&] {
    const std::span<const LocalOp> made = builder_.since(before_op);
    return std::all_of(made.begin(), made.end(), [&](const LocalOp& one) { return is_plain(one); });
  };
  bool is_emitted = partial != 0 && combine->is_pick && emit_on_shard(op, def, operands, layouts, partial);
  if (!is_emitted && (partial == 0 || !combine->is_pick)) {
    if (halo) {
      emit_fetching(*halo, op, def, view, operands, layouts, partial);
    } else {
      emit(op, def, operands, layouts, partial);
    }
    is_emitted = !input_.plain_ops || is_all_plain();
    if (!is_emitted && def.on_shard != nullptr && !halo) {
      builder_.rewind(before_op);
      is_emitted = emit_on_shard(op, def, operands, layouts, partial);
    }
  }
  if (!is_emitted) {
    builder_.rewind(mark);
    return lower_whole(op, def, scope);
  }
  if (partial != 0) combine_partials(op, *combine, partial, scope);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (shifted || (halo && layouts[i] != op_tensors[op.operands.size() + i].layout))
      builder_.mark_shifted(local(op.results[i]));
  }

  // A broadcast of a scalar can be computed again in any layout.
  const bool of_scalars =
      !op.operands.empty() && std::all_of(op.operands.begin(), op.operands.end(), [&](ir::ValueId id) {
        return module_main_.type_of(id).rank() == 0 && builder_.type(local(id)).varies == 0;
      });
  if (of_scalars && op.results.size() == 1 && op.regions.empty() && result_types.front().rank() > 0 && partial == 0) {
    builder_.remember_last(local(op.results.front()));
  }
  for (const ir::ValueId result : op.results) reshard_returned(result);
}

void Lowering::reshard_returned(ir::ValueId id) {
  for (const Returned& returned : returned_) {
    const LocalId made = local(id);
    if (returned.value == id && returned.layout.view == builder_.layout(made).view)
      builder_.reshard(made, returned.layout, module_main_.location, returned.reason);
  }
}

void Lowering::emit(const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
                    const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial) {
  sharding::SubAxisSet outer = partial;
  for (const LocalId operand : operands) outer |= builder_.type(operand).varies;

  LocalOp made;
  made.def = &def;
  made.name = op.name;
  made.operands = operands;
  made.attributes = op.attributes;
  made.regions = op.regions;
  made.location = op.location;
  std::vector<ir::Type> local_operands;
  for (const LocalId id : operands) local_operands.push_back(builder_.value(id).local_type());
  std::vector<ir::Type> local_results;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const LocalId id = builder_.add_value(module_main_.type_of(op.results[i]).tensor, result_layouts[i], outer,
                                          module_main_.values[static_cast<size_t>(op.results[i])].name);
    made.results.push_back(id);
    local_results.push_back(builder_.value(id).local_type());
    define(op.results[i], id);
  }
  if (def.localize != nullptr) {
    const std::vector<ir::Type> operand_types = types_of(op.operands);
    const std::vector<ir::Type> result_types = types_of(op.results);
    made.attributes =
        def.localize({operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location},
                     {local_operands, local_results, &op.attributes, op.regions, &module_main_, &op.location});
  }
  if (ir::find(made.attributes, ops::kResultsApart) != nullptr && !input_.plain_ops) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      LocalOp one = made;
      one.results = {made.results[i]};
      one.attributes.emplace_back(std::string(ops::kOnlyResult),
                                  ir::Attribute{ir::IntegerAttr{static_cast<int64_t>(i), "i64"}});
      builder_.append(std::move(one));
    }
    return;
  }
  builder_.append(std::move(made));
}

}  // namespace meshd::partition
