#include "service/partition/lower/structure/lower_constraints.h"

#include "service/ops/op_def.h"
#include "service/partition/moves.h"

namespace meshd::partition {
namespace {

// True when the value's only use is to be resharded elsewhere: by a constraint, or by what it is returned to.
bool is_only_passed_on(const LoweringContext& context, ir::ValueId id) {
  const auto number = static_cast<size_t>(id);
  if (context.uses.counts[number] != 1) return false;
  // What a call moves is its own.
  const ir::Op& user = *context.uses.last_users[number];
  const ir::Op* definition = context.uses.definitions[number];
  if (definition == nullptr || definition->location.frame != user.location.frame) return false;
  const auto role = ops::role_of(ops::op(user.code).body);
  return role == ops::Structural::kReturn || role == ops::Structural::kShardingConstraint;
}

}  // namespace

void lower_constraint(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const ops::OpDef& def = ops::op(op.code);
  const bool is_written = def.axes.effect != ops::AxesEffect::kNone;
  const bool is_constraint = ops::role_of(def.body) == ops::Structural::kShardingConstraint;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(context, op.results[i])) continue;
    LocalId value = context.local(op.operands[i]);
    const ShardLayout to = wanted(context, op.results[i], scope);
    const bool is_moot = is_constraint && !is_written && is_only_passed_on(context, op.results[i]);
    const ShardedType& type = context.builder.type(value);
    if (!is_moot && (to.view == type.layout.view || type.outer() == 0)) {
      const sharding::SubAxisSet summed = unreduced_sub_axes(context, sharding_of(context, op.results[i]));
      const ShardLayout terms = with_terms(context, value, to, summed);
      // Shardy's collectives name what they move; a reshard and a constraint name only where to.
      value = is_written ? context.builder.reshard(value, terms, op.location, std::string(kWritten))
                         : context.builder.defer(value, terms, op.location, "constraint");
    }
    context.define(op.results[i], value);
  }
}

void lower_barrier(LoweringContext& context, const ir::Op& op, const Scope& /*scope*/) {
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!is_token(context, op.results[i])) context.define(op.results[i], context.local(op.operands[i]));
  }
}

}  // namespace meshd::partition
