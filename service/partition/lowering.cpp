#include "service/partition/lowering.h"

#include <algorithm>
#include <variant>

#include "service/partition/donation.h"
#include "service/partition/moves.h"

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

}  // namespace

Lowering::Lowering(const PartitionInput& input, const Views& views)
    : input_(input), views_(views), module_main_(input.module->main()), builder_(views, input.module->main()) {
  env_.assign(module_main_.values.size(), -1);
}

Placed Lowering::wanted(ir::ValueId id, const Scope& scope) const {
  const auto number = static_cast<size_t>(id);
  const int64_t rank = module_main_.type_of(id).is_tensor() ? module_main_.type_of(id).rank() : 0;
  if (number >= input_.value_shardings.size() || !input_.value_shardings[number]) return whole(rank, scope.view);
  Placed placed = place(views_, *input_.value_shardings[number]);
  if (static_cast<int64_t>(placed.dims.size()) != rank) return whole(rank, scope.view);
  return placed.without(scope.manual);
}

std::vector<ir::Type> Lowering::types_of(const std::vector<ir::ValueId>& ids) const {
  std::vector<ir::Type> types;
  types.reserve(ids.size());
  for (const ir::ValueId id : ids) types.push_back(module_main_.type_of(id));
  return types;
}

LocalId Lowering::bring_whole(ir::ValueId id, const Scope& scope, const ir::Location& location,
                              const std::string& reason) {
  const LocalId source = local(id);
  const auto rank = static_cast<int64_t>(builder_.value(source).dim_atoms.size());
  const int view = builder_.outer(source) != 0 ? builder_.value(source).view : scope.view;
  return builder_.bring(source, whole(rank, view), location, reason);
}

void Lowering::lower_arguments(LocalBlock& body) {
  int64_t position = 0;
  for (size_t i = 0; i < module_main_.arguments.size(); ++i) {
    const ir::Parameter& parameter = module_main_.arguments[i];
    if (parameter.is_token) continue;
    const ir::ValueId id = module_main_.body.arguments[i];
    const Scope scope;
    const auto annotated = of_rank(input_.argument_shardings[i], parameter.type.rank());
    const Placed placed = annotated ? place(views_, *annotated) : whole(parameter.type.rank());
    LocalParameter made;
    made.value = builder_.add_value(parameter.type, placed, 0, module_main_.values[static_cast<size_t>(id)].name);
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
    const Placed placed = annotated ? place(views_, *annotated) : whole(parameter.type.rank());
    LocalParameter made;
    made.value =
        builder_.bring(local(returned[i]), placed, module_main_.location, "result " + std::to_string(position));
    made.value = builder_.vary(made.value, builder_.placed(made.value).mask(), module_main_.location, "result");
    made.position = position++;
    made.global_type = parameter.type.tensor;
    made.sharding = annotated ? *annotated : sharding::fully_replicated("", nullptr, parameter.type.rank());
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
  for (const ir::Op& op : region.ops) {
    if (ops::role_of(ops::op(op.code).body) == ops::Structural::kReturn) {
      returned = op.operands;
      return;
    }
    lower(op, scope);
  }
}

void Lowering::lower(const ir::Op& op, const Scope& scope) {
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
      return lower_effect(op, scope);
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
          const Placed to = wanted(op.results[i], scope);
          if (to.view == builder_.value(value).view || builder_.outer(value) == 0) {
            // Shardy's collectives name what they move; a reshard and a constraint name only where to.
            const bool is_written = takes_out_sharding(ops::op(op.code));
            value = builder_.bring(value, to, op.location, is_written ? std::string(kWritten) : "constraint");
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
