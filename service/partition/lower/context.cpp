#include "service/partition/lower/context.h"

#include <algorithm>

#include "service/ir/walk.h"
#include "service/ops/op_def.h"

namespace meshd::partition {
namespace {

bool has_effect(const ir::Function& main, const ir::Op& op) {
  bool found = false;
  ir::walk(op, [&](const ir::Op& inner) {
    const ops::OpDef& def = ops::op(inner.code);
    const bool ends_region = ops::role_of(def.body) == ops::Structural::kReturn;
    found = found || (!ends_region && ops::has_effect(def, ops::OpInstance(main, inner).view));
  });
  return found;
}

// Adds the dead ops of a region to `dead`; `is_read` has what ops behind it and around it read.
void find_dead(const ir::Function& main, const ir::Region& region, std::vector<bool>& is_read,
               std::unordered_set<const ir::Op*>& dead) {
  for (size_t i = region.ops.size(); i-- > 0;) {
    const ir::Op& op = region.ops[i];
    const bool is_needed = i + 1 == region.ops.size() || op.results.empty() ||
                           std::any_of(op.results.begin(), op.results.end(),
                                       [&](ir::ValueId id) { return is_read[static_cast<size_t>(id)]; });
    if (!is_needed && !has_effect(main, op)) {
      dead.insert(&op);
      continue;
    }
    for (const ir::ValueId id : op.operands) is_read[static_cast<size_t>(id)] = true;
    for (const ir::Region& inner : op.regions) find_dead(main, inner, is_read, dead);
  }
}

// True when no call is between a value's definition and its reader: what a call moves is its own.
bool is_of_one_frame(const ir::Op* definition, const ir::Op* reader) {
  return definition != nullptr && definition->location.frame == reader->location.frame;
}

// `to`, and the sub-axes in `summed` that `has` has beside those of `to`.
ShardLayout terms_of(const ShardLayout& has, const ShardLayout& to, sharding::SubAxisSet summed) {
  ShardLayout terms = to;
  for (size_t d = 0; has.view == to.view && d < to.dims.size(); ++d) {
    std::vector<int> kept = has.dims[d];
    std::erase_if(kept, [&](int a) { return ((summed | mask_of(to.dims[d])) >> a & 1) == 0; });
    std::vector<int> unsummed = kept;
    std::erase_if(unsummed, [&](int a) { return (summed >> a & 1) != 0; });
    if (unsummed == to.dims[d]) terms.dims[d] = std::move(kept);
  }
  return terms;
}

}  // namespace

DefinitionsAndUses::DefinitionsAndUses(const ir::Function& main)
    : definitions(main.values.size(), nullptr),
      counts(main.values.size(), 0),
      last_users(main.values.size(), nullptr),
      handed_on(main.values.size(), -1) {
  std::vector<bool> is_read(main.values.size());
  find_dead(main, main.body, is_read, dead);
  const auto hand_on = [&](const ir::Op& reader, const ir::Op& to) {
    for (size_t i = 0; i < reader.operands.size() && i < to.results.size(); ++i)
      handed_on[static_cast<size_t>(reader.operands[i])] = to.results[i];
  };
  ir::walk(main.body, [&](const ir::Op& op) {
    for (const ir::ValueId id : op.results) definitions[static_cast<size_t>(id)] = &op;
    if (dead.contains(&op)) return ir::WalkResult::kSkip;
    for (const ir::ValueId id : op.operands) {
      ++counts[static_cast<size_t>(id)];
      last_users[static_cast<size_t>(id)] = &op;
    }
    const ops::OpDef& def = ops::op(op.code);
    const auto role = ops::role_of(def.body);
    if (role == ops::Structural::kShardingConstraint && def.axes.effect == ops::AxesEffect::kNone) hand_on(op, op);
    if (role == ops::Structural::kWhile) hand_on(op.regions[1].ops.back(), op);
    if (role == ops::Structural::kCase || role == ops::Structural::kIf) {
      for (const ir::Region& region : op.regions) hand_on(region.ops.back(), op);
    }
    return ir::WalkResult::kAdvance;
  });
  for (size_t id = 0; id < handed_on.size(); ++id) {
    if (counts[id] != 1 || !is_of_one_frame(definitions[id], last_users[id])) handed_on[id] = -1;
  }
}

LoweringContext::LoweringContext(const PartitionInput& given, const Views& all_views)
    : input(given),
      views(all_views),
      main(given.module->main()),
      uses(main),
      builder(all_views, main),
      env(main.values.size(), -1) {}

LocalId LoweringContext::add_value(ir::ValueId id, const ShardLayout& layout, sharding::SubAxisSet outer) {
  return builder.add_value(main.type_of(id).tensor, layout, outer, name(id));
}

bool is_token(const LoweringContext& context, ir::ValueId id) { return context.main.type_of(id).is_token(); }

const std::optional<sharding::TensorSharding>& sharding_of(const LoweringContext& context, ir::ValueId id) {
  static const std::optional<sharding::TensorSharding> kNone;
  const auto number = static_cast<size_t>(id);
  return number < context.input.value_shardings.size() ? context.input.value_shardings[number] : kNone;
}

ShardLayout wanted(const LoweringContext& context, ir::ValueId id, const Scope& scope) {
  const ir::Type& type = context.main.type_of(id);
  const int64_t rank = type.is_tensor() ? type.rank() : 0;
  const std::optional<sharding::TensorSharding>& sharding = sharding_of(context, id);
  if (!sharding) return replicated(rank, scope.view);
  const ShardLayout layout = resolve_layout(context.views, *sharding);
  if (static_cast<int64_t>(layout.dims.size()) != rank) return replicated(rank, scope.view);
  return layout.without(scope.manual);
}

ShardLayout wanted_by_reader(const LoweringContext& context, ir::ValueId id, const Scope& scope) {
  const DefinitionsAndUses& uses = context.uses;
  bool is_region_result = false;  // which has one layout, whoever reads it
  while (!is_region_result && uses.handed_on[static_cast<size_t>(id)] >= 0) {
    is_region_result =
        ops::role_of(ops::op(uses.last_users[static_cast<size_t>(id)]->code).body) == ops::Structural::kReturn;
    id = uses.handed_on[static_cast<size_t>(id)];
  }
  ShardLayout layout = wanted(context, id, scope);
  const auto number = static_cast<size_t>(id);
  if (is_region_result || uses.counts[number] != 1 ||
      !is_of_one_frame(uses.definitions[number], uses.last_users[number]))
    return layout;
  const auto returned = context.returned.find(id);  // one at most, as it is read once
  return returned != context.returned.end() && returned->second.layout.view == layout.view ? returned->second.layout
                                                                                           : layout;
}

bool has_mesh(const std::optional<sharding::TensorSharding>& sharding) {
  return sharding && sharding->mesh != nullptr && !(sharding->mesh->axes.empty() && sharding->mesh->device_ids.empty());
}

bool have_other_axes(const std::optional<sharding::TensorSharding>& a,
                     const std::optional<sharding::TensorSharding>& b) {
  return has_mesh(a) && has_mesh(b) && a->mesh->axes != b->mesh->axes;
}

sharding::SubAxisSet unreduced_sub_axes(const LoweringContext& context,
                                        const std::optional<sharding::TensorSharding>& sharding) {
  sharding::SubAxisSet sub_axes = 0;
  if (!sharding || sharding->unreduced_kind != sharding::ReductionKind::kSum) return sub_axes;
  for (const sharding::AxisRef& axis : sharding->unreduced)
    sub_axes |= mask_of(context.views.sub_axes_of(sharding->mesh, axis));
  return sub_axes;
}

ShardLayout with_terms(const LoweringContext& context, LocalId id, const ShardLayout& to, sharding::SubAxisSet summed) {
  const Builder& builder = context.builder;
  ShardLayout nearest = to;
  double least = builder.lacking(id, to);
  for (const LocalId same : builder.sources().same_values(id)) {
    ShardLayout terms = terms_of(builder.layout(same), to, summed);
    const double lacking = builder.lacking(id, terms);
    if (lacking >= least) continue;
    least = lacking;
    nearest = std::move(terms);
  }
  return nearest;
}

LocalId reshard_to_replicated(LoweringContext& context, ir::ValueId id, const Scope& scope,
                              const ir::Location& location, const std::string& reason) {
  const LocalId source = context.local(id);
  const ShardedType& type = context.builder.type(source);
  const int view = type.outer() != 0 ? type.layout.view : scope.view;
  return context.builder.reshard(source, replicated(static_cast<int64_t>(type.rank()), view), location, reason);
}

}  // namespace meshd::partition
