#include "service/partition/lower/lowering.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

#include "service/ops/collective/host_transfers.h"
#include "service/partition/dead_ops.h"
#include "service/partition/donation.h"
#include "service/partition/lower/ruled/lower_ops.h"
#include "service/partition/lower/structure/channel_order.h"
#include "service/partition/lower/structure/lower_collectives.h"
#include "service/partition/lower/structure/lower_constraints.h"
#include "service/partition/lower/structure/lower_effects.h"
#include "service/partition/lower/structure/lower_host_transfers.h"
#include "service/partition/lower/structure/lower_manual.h"
#include "service/partition/lower/structure/lower_parameters.h"
#include "service/partition/lower/structure/lower_regions.h"

namespace meshd::partition {
namespace {

using LowerFn = void (*)(LoweringContext&, const ir::Op&, const Scope&);

void lower_to_nothing(LoweringContext& /*context*/, const ir::Op& /*op*/, const Scope& /*scope*/) {}

void refuse_here(LoweringContext& /*context*/, const ir::Op& op, const Scope& /*scope*/) {
  ir::fail("unsupported_op", op.location, "'" + op.name + "' cannot be here");
}

LowerFn stage_of(ops::Structural kind, const ir::Op& op) {
  using ops::Structural;
  switch (kind) {
    case Structural::kConstant:
      return lower_rematerialised;
    case Structural::kWhile:
      return lower_while;
    case Structural::kCase:
    case Structural::kIf:
      return lower_case;
    case Structural::kManualComputation:
      return lower_manual;
    case Structural::kNamedComputation:
    case Structural::kComposite:
      return lower_inline_region;
    case Structural::kPartitionId:
      return lower_partition_id;
    case Structural::kReplicaId:
      return lower_replica_id;
    case Structural::kCustomCall:
      return lower_custom_call;
    case Structural::kEffect:
      return ops::is_host_transfer(op.name) ? lower_host_transfer : lower_effect;
    case Structural::kShardingGroup:
    case Structural::kAfterAll:  // tokens: the order of ops is the order of effects
      return lower_to_nothing;
    case Structural::kShardingConstraint:
    case Structural::kReshard:
      return lower_constraint;
    case Structural::kOptimizationBarrier:
    case Structural::kPropagationBarrier:
      return lower_barrier;
    case Structural::kReturn:
    case Structural::kCall:
    case Structural::kTuple:
    case Structural::kGetTupleElement:
      break;
  }
  return refuse_here;
}

// The stage of an op, by how this instance of it runs.
LowerFn stage_of(const LoweringContext& context, const ir::Op& op) {
  const ops::OpDef& def = ops::op(op.code);
  // How an instance runs may depend on its types or its custom-call target.
  const ops::Body body = ops::body_of(def, ops::OpInstance(context.main, op).view);
  if (const auto* kind = std::get_if<ops::Structural>(&body)) return stage_of(*kind, op);
  // A custom call whose target is a function of its operands, or one that is not executed.
  if (std::holds_alternative<ops::Structural>(def.body)) return lower_custom_call;
  if (std::holds_alternative<ops::Unsupported>(body))
    ir::fail("unsupported_op", op.location, "'" + op.name + "' is known, but not run here yet");
  if (std::holds_alternative<ops::GroupKernel>(body)) return lower_collective;
  return def.free_result_layout && op.operands.empty() ? lower_rematerialised : lower_ruled;
}

// True when an op's values are laid out over meshes with different axes.
bool is_between_meshes(const LoweringContext& context, const ir::Op& op) {
  const std::optional<sharding::TensorSharding>* first = nullptr;
  for (const auto* ids : {&op.operands, &op.results}) {
    for (const ir::ValueId id : *ids) {
      const std::optional<sharding::TensorSharding>& sharding = sharding_of(context, id);
      if (first != nullptr && have_other_axes(*first, sharding)) return true;
      if (has_mesh(sharding)) first = &sharding;
    }
  }
  return false;
}

void lower_op(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const Builder::Mark mark = context.builder.mark();
  stage_of(context, op)(context, op, scope);
  if (!op.regions.empty() || !is_between_meshes(context, op)) return;
  context.builder.mark_unruled(mark);
  for (const ir::ValueId id : op.results) {
    if (!is_token(context, id) && context.builder.layout(context.local(id)).mask() != 0)
      context.builder.sources().mark_unruled(context.local(id));
  }
}

}  // namespace

std::vector<ir::ValueId> lower_block(LoweringContext& context, const ir::Region& region, const Scope& scope) {
  // Channels pair up within a block.
  auto outside = std::exchange(context.unmatched_sends, {});
  std::vector<ir::ValueId> returned;
  for (const ir::Op* op : in_channel_order(region)) {
    if (ops::role_of(ops::op(op->code).body) == ops::Structural::kReturn) {
      returned = op->operands;
      break;
    }
    if (!context.uses.dead.contains(op)) lower_op(context, *op, scope);
  }
  for (const auto& [channel, sends] : context.unmatched_sends) {
    if (sends.empty()) continue;
    ir::fail("invalid_program", sends.front()->location,
             fmt::format("channel {} has a send without a recv in the same block", channel));
  }
  context.unmatched_sends = std::move(outside);
  return returned;
}

LocalProgram lower_program(const PartitionInput& input, const Views& views) {
  LoweringContext context(input, views);
  context.returned = returned_values(context);
  context.manual_operands = manual_operands(context);
  LocalBlock body;
  {
    const Builder::Inside inside(context.builder, body);
    lower_arguments(context, body);
    lower_results(context, lower_block(context, context.main.body, Scope{}), body);
  }
  context.builder.program().body = std::move(body);
  drop_dead_ops(context.builder.program());
  plan_donation(context.builder.program(), context.main, input.donate);
  return context.builder.finish();
}

}  // namespace meshd::partition
