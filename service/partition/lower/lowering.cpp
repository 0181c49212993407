#include "service/partition/lower/lowering.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "service/ops/collective/host_transfers.h"
#include "service/partition/donation.h"
#include "service/partition/export/channel_order.h"
#include "service/partition/lower/moves.h"

namespace meshd::partition {
namespace {

bool takes_out_sharding(const ops::OpDef& def) {
  return std::any_of(def.signature.attributes.begin(), def.signature.attributes.end(),
                     [](const ops::AttributeSpec& spec) { return spec.name == "out_sharding"; });
}

// Shardings over a maximal mesh may have no dimensions: they cut nothing.
std::optional<sharding::TensorSharding> of_rank(const std::optional<sharding::TensorSharding>& sharding, int64_t rank) {
  return sharding && sharding->rank() == rank ? sharding : std::nullopt;
}

// Maximal meshes count: they have no axes, but a device.
bool has_mesh(const std::optional<sharding::TensorSharding>& sharding) {
  return sharding && sharding->mesh != nullptr && !(sharding->mesh->axes.empty() && sharding->mesh->device_ids.empty());
}

bool have_other_axes(const std::optional<sharding::TensorSharding>& a,
                     const std::optional<sharding::TensorSharding>& b) {
  return has_mesh(a) && has_mesh(b) && a->mesh->axes != b->mesh->axes;
}

}  // namespace

Lowering::Lowering(const PartitionInput& input, const Views& views)
    : input_(input), views_(views), module_main_(input.module->main()), builder_(views, input.module->main()) {
  env_.assign(module_main_.values.size(), -1);
  definitions_.assign(module_main_.values.size(), nullptr);
  use_counts_.assign(module_main_.values.size(), 0);
  last_users_.assign(module_main_.values.size(), nullptr);
  collect_definitions(module_main_.body);
  if (module_main_.body.ops.empty()) return;
  const std::vector<ir::ValueId>& given = module_main_.body.ops.back().operands;
  for (size_t i = 0, position = 0; i < given.size() && i < module_main_.results.size(); ++i) {
    const ir::Parameter& parameter = module_main_.results[i];
    if (parameter.is_token) continue;
    const auto annotated = of_rank(input_.result_shardings[i], parameter.type.rank());
    const std::string reason = "result " + std::to_string(position++);
    if (unreduced_sub_axes(annotated) == 0 && !have_other_axes(sharding_at(given[i]), annotated))
      returned_.push_back(
          {given[i], annotated ? resolve_layout(views_, *annotated) : replicated(parameter.type.rank()), reason});
  }
}

void Lowering::collect_definitions(const ir::Region& region) {
  for (const ir::Op& op : region.ops) {
    for (const ir::ValueId id : op.results) definitions_[static_cast<size_t>(id)] = &op;
    for (const ir::ValueId id : op.operands) {
      ++use_counts_[static_cast<size_t>(id)];
      last_users_[static_cast<size_t>(id)] = &op;
    }
    for (const ir::Region& inner : op.regions) collect_definitions(inner);
  }
}

std::vector<const ir::Op*> Lowering::definitions_of(const std::vector<ir::ValueId>& ids) const {
  std::vector<const ir::Op*> out;
  out.reserve(ids.size());
  for (const ir::ValueId id : ids) out.push_back(definitions_[static_cast<size_t>(id)]);
  return out;
}

const std::optional<sharding::TensorSharding>& Lowering::sharding_at(ir::ValueId id) const {
  static const std::optional<sharding::TensorSharding> kNone;
  const auto number = static_cast<size_t>(id);
  return number < input_.value_shardings.size() ? input_.value_shardings[number] : kNone;
}

bool Lowering::is_only_passed_on(ir::ValueId id) const {
  if (use_counts_[static_cast<size_t>(id)] != 1) return false;
  // What a call moves is its own.
  const ir::Op& user = *last_users_[static_cast<size_t>(id)];
  const ir::Op* definition = definitions_[static_cast<size_t>(id)];
  if (definition == nullptr || definition->location.frame != user.location.frame) return false;
  const auto role = ops::role_of(ops::op(user.code).body);
  return role == ops::Structural::kReturn || role == ops::Structural::kShardingConstraint;
}

bool Lowering::is_between_meshes(const ir::Op& op) const {
  const std::optional<sharding::TensorSharding>* first = nullptr;
  for (const auto* ids : {&op.operands, &op.results}) {
    for (const ir::ValueId id : *ids) {
      const std::optional<sharding::TensorSharding>& sharding = sharding_at(id);
      if (!has_mesh(sharding)) continue;
      if (first != nullptr && have_other_axes(*first, sharding)) return true;
      first = &sharding;
    }
  }
  return false;
}

ShardLayout Lowering::wanted(ir::ValueId id, const Scope& scope) const {
  const auto number = static_cast<size_t>(id);
  const int64_t rank = module_main_.type_of(id).is_tensor() ? module_main_.type_of(id).rank() : 0;
  if (number >= input_.value_shardings.size() || !input_.value_shardings[number]) return replicated(rank, scope.view);
  ShardLayout layout = resolve_layout(views_, *input_.value_shardings[number]);
  if (static_cast<int64_t>(layout.dims.size()) != rank) return replicated(rank, scope.view);
  return layout.without(scope.manual);
}

sharding::SubAxisSet Lowering::unreduced_sub_axes(const std::optional<sharding::TensorSharding>& sharding) const {
  sharding::SubAxisSet sub_axes = 0;
  if (!sharding || sharding->unreduced_kind != sharding::ReductionKind::kSum) return sub_axes;
  for (const sharding::AxisRef& axis : sharding->unreduced)
    sub_axes |= mask_of(views_.sub_axes_of(sharding->mesh, axis));
  return sub_axes;
}

LocalId Lowering::reshard_or_sum(LocalId id, const ShardLayout& to, sharding::SubAxisSet summed,
                                 const ir::Location& location, const std::string& reason) {
  const ShardLayout lies = builder_.layout(id);
  return lies.view == to.view && lies.without(summed) == to ? id : builder_.reshard(id, to, location, reason);
}

std::vector<ir::Type> Lowering::types_of(const std::vector<ir::ValueId>& ids) const {
  std::vector<ir::Type> types;
  types.reserve(ids.size());
  for (const ir::ValueId id : ids) types.push_back(module_main_.type_of(id));
  return types;
}

LocalId Lowering::reshard_to_replicated(ir::ValueId id, const Scope& scope, const ir::Location& location,
                                        const std::string& reason) {
  const LocalId source = local(id);
  const auto rank = static_cast<int64_t>(builder_.type(source).rank());
  const int view = builder_.type(source).outer() != 0 ? builder_.layout(source).view : scope.view;
  return builder_.reshard(source, replicated(rank, view), location, reason);
}

void Lowering::lower_arguments(LocalBlock& body) {
  int64_t position = 0;
  for (size_t i = 0; i < module_main_.arguments.size(); ++i) {
    const ir::Parameter& parameter = module_main_.arguments[i];
    if (parameter.is_token) continue;
    const ir::ValueId id = module_main_.body.arguments[i];
    const Scope scope;
    const auto annotated = of_rank(input_.argument_shardings[i], parameter.type.rank());
    const ShardLayout layout = annotated ? resolve_layout(views_, *annotated) : replicated(parameter.type.rank());
    LocalParameter made;
    made.value =
        builder_.add_value(parameter.type.tensor, layout, 0, module_main_.values[static_cast<size_t>(id)].name);
    made.position = position++;
    made.global_type = parameter.type.tensor;
    made.sharding = annotated ? *annotated : sharding::fully_replicated("", nullptr, parameter.type.rank());
    made.is_donated = parameter.aliases_output.has_value() || parameter.is_donor;
    define(id, made.value);
    body.arguments.push_back(made.value);
    builder_.program().arguments.push_back(std::move(made));
  }
}

void Lowering::lower_results(const std::vector<ir::ValueId>& returned, LocalBlock& body) {
  int64_t position = 0;
  for (size_t i = 0; i < module_main_.results.size(); ++i) {
    const ir::Parameter& parameter = module_main_.results[i];
    if (parameter.is_token) continue;
    const auto annotated = of_rank(input_.result_shardings[i], parameter.type.rank());
    const ShardLayout layout = annotated ? resolve_layout(views_, *annotated) : replicated(parameter.type.rank());
    LocalParameter made;
    const Builder::Mark mark = builder_.mark();
    made.value = reshard_or_sum(local(returned[i]), layout, unreduced_sub_axes(annotated), module_main_.location,
                                "result " + std::to_string(position));
    if (have_other_axes(sharding_at(returned[i]), annotated)) builder_.mark_unruled(mark);
    made.value = builder_.vary(made.value, builder_.layout(made.value).mask(), module_main_.location, "result");
    made.position = position++;
    made.global_type = parameter.type.tensor;
    made.sharding = annotated ? *annotated : sharding::fully_replicated("", nullptr, parameter.type.rank());
    // What is to be summed over axes lies in parts along them: each part is what the others would add 0 to.
    if (builder_.layout(made.value) != layout) made.sharding = layout_sharding(builder_.program(), made.value);
    made.result_info = parameter.result_info;
    body.results.push_back(made.value);
    builder_.program().results.push_back(std::move(made));
  }
}

LocalProgram Lowering::run() {
  LocalBlock body;
  {
    const Builder::Inside inside(builder_, body);
    lower_arguments(body);
    std::vector<ir::ValueId> returned;
    lower_block(module_main_.body, Scope{}, returned);
    lower_results(returned, body);
  }
  builder_.program().body = std::move(body);
  plan_donation(builder_.program(), module_main_, input_.donate);
  return builder_.finish();
}

void Lowering::lower_block(const ir::Region& region, const Scope& scope, std::vector<ir::ValueId>& returned) {
  // Channels pair up within a block.
  auto outside = std::exchange(sent_, {});
  for (const ir::Op* op : in_channel_order(region)) {
    if (ops::role_of(ops::op(op->code).body) == ops::Structural::kReturn) {
      returned = op->operands;
      break;
    }
    lower(*op, scope);
  }
  for (const auto& [channel, sends] : sent_) {
    if (sends.empty()) continue;
    ir::fail("invalid_program", sends.front()->location,
             "channel " + std::to_string(channel) + " has a send without a recv in the same block");
  }
  sent_ = std::move(outside);
}

void Lowering::lower(const ir::Op& op, const Scope& scope) {
  const Builder::Mark mark = builder_.mark();
  lower_any(op, scope);
  if (!op.regions.empty() || !is_between_meshes(op)) return;
  builder_.mark_unruled(mark);
  for (const ir::ValueId id : op.results) {
    if (!is_token(id) && builder_.layout(local(id)).mask() != 0) builder_.mark_unruled(local(id));
  }
}

void Lowering::lower_any(const ir::Op& op, const Scope& scope) {
  const ops::OpDef& def = ops::op(op.code);
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  // How an instance runs may depend on its types or its custom-call target.
  const ops::Body body =
      ops::body_of(def, {operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location});
  if (const auto* kind = std::get_if<ops::Structural>(&body)) {
    lower_structural(*kind, op, scope);
  } else if (std::holds_alternative<ops::Structural>(def.body)) {
    // A custom call whose target is a function of its operands, or one that nobody runs.
    lower_custom_call(op, scope);
  } else if (std::holds_alternative<ops::Unsupported>(body)) {
    ir::fail("unsupported_op", op.location, "'" + op.name + "' is known, but not run here yet");
  } else if (std::holds_alternative<ops::GroupKernel>(body)) {
    lower_collective(op, def, scope);
  } else if (def.free_result_layout && op.operands.empty()) {
    lower_made(op, &def, scope);
  } else {
    lower_ruled(op, def, scope);
  }
}

void Lowering::lower_structural(ops::Structural kind, const ir::Op& op, const Scope& scope) {
  using ops::Structural;
  switch (kind) {
    case Structural::kConstant:
      return lower_made(op, nullptr, scope);
    case Structural::kWhile:
      return lower_while(op, scope);
    case Structural::kCase:
    case Structural::kIf:
      return lower_case(op, scope);
    case Structural::kManualComputation:
      return lower_manual(op, scope);
    case Structural::kNamedComputation:
    case Structural::kComposite:
      return lower_inline_region(op, scope);
    case Structural::kPartitionId:
      return lower_position(op, scope, true);
    case Structural::kReplicaId:
      return lower_position(op, scope, false);
    case Structural::kCustomCall:
      return lower_custom_call(op, scope);
    case Structural::kEffect:
      return ops::is_host_transfer(op.name) ? lower_host_transfer(op, scope) : lower_effect(op, scope);
    case Structural::kShardingGroup:
      break;
    case Structural::kAfterAll:
      break;  // tokens: the order of ops is the order of effects
    case Structural::kOptimizationBarrier:
    case Structural::kShardingConstraint:
    case Structural::kReshard:
    case Structural::kPropagationBarrier:
      for (size_t i = 0; i < op.results.size(); ++i) {
        if (is_token(op.results[i])) continue;
        LocalId value = local(op.operands[i]);
        if (kind == Structural::kShardingConstraint || kind == Structural::kReshard) {
          const ShardLayout to = wanted(op.results[i], scope);
          const bool is_written = takes_out_sharding(ops::op(op.code));
          const bool is_moot =
              kind == Structural::kShardingConstraint && !is_written && is_only_passed_on(op.results[i]);
          if (!is_moot && (to.view == builder_.layout(value).view || builder_.type(value).outer() == 0)) {
            // Shardy's collectives name what they move; a reshard and a constraint name only where to.
            value = reshard_or_sum(value, to, unreduced_sub_axes(sharding_at(op.results[i])), op.location,
                                   is_written ? std::string(kWritten) : "constraint");
          }
        }
        define(op.results[i], value);
      }
      break;
    case Structural::kReturn:
    case Structural::kCall:
    case Structural::kTuple:
    case Structural::kGetTupleElement:
      ir::fail("unsupported_op", op.location, "'" + op.name + "' cannot stand here");
  }
}

}  // namespace meshd::partition
