#include "service/partition/lower/structure/lower_parameters.h"

#include <fmt/core.h>

#include "service/partition/moves.h"

namespace meshd::partition {
namespace {

// Shardings over a maximal mesh may have no dimensions: they shard nothing, and the value is on the mesh's device.
std::optional<sharding::TensorSharding> of_rank(const std::optional<sharding::TensorSharding>& sharding, int64_t rank) {
  if (sharding && sharding->mesh != nullptr && sharding->mesh->is_maximal())
    return sharding::fully_replicated(sharding->mesh_name, sharding->mesh, rank);
  return sharding && sharding->rank() == rank ? sharding : std::nullopt;
}

// What an argument and a result have in common; the layout of the annotation.
ShardLayout describe(const LoweringContext& context, const ir::Parameter& parameter,
                     const std::optional<sharding::TensorSharding>& annotated, LocalParameter& made) {
  const int64_t rank = parameter.type.rank();
  made.global_type = parameter.type.tensor;
  made.sharding = annotated ? *annotated : sharding::fully_replicated("", nullptr, rank);
  return annotated ? resolve_layout(context.views, *annotated) : replicated(rank);
}

// A token of an older text, which ops may read: a value without elements.
void define_empty(LoweringContext& context, ir::ValueId id) {
  LocalOp made;
  made.kind = LocalKind::kConstant;
  made.name = "stablehlo.constant";
  made.attributes = {{"value", {ir::splat_attr(context.main.type_of(id).tensor, {std::byte{0}})}}};
  made.location = context.main.location;
  made.results = {context.add_value(id, replicated(context.main.type_of(id).rank()), 0)};
  context.define(id, made.results[0]);
  context.builder.append(std::move(made));
}

}  // namespace

std::multimap<ir::ValueId, ReturnedValue> returned_values(const LoweringContext& context) {
  std::multimap<ir::ValueId, ReturnedValue> out;
  if (context.main.body.ops.empty()) return out;
  const std::vector<ir::ValueId>& given = context.main.body.ops.back().operands;
  for (size_t i = 0, position = 0; i < given.size() && i < context.main.results.size(); ++i) {
    const ir::Parameter& parameter = context.main.results[i];
    if (parameter.is_token) continue;
    const auto annotated = of_rank(context.input.result_shardings[i], parameter.type.rank());
    const std::string reason = fmt::format("result {}", position++);
    LocalParameter result;
    if (unreduced_sub_axes(context, annotated) == 0 && !have_other_axes(sharding_of(context, given[i]), annotated))
      out.emplace(given[i], ReturnedValue{describe(context, parameter, annotated, result), reason});
  }
  return out;
}

void lower_arguments(LoweringContext& context, LocalBlock& body) {
  int64_t position = 0;
  for (size_t i = 0; i < context.main.arguments.size(); ++i) {
    const ir::Parameter& parameter = context.main.arguments[i];
    const ir::ValueId id = context.main.body.arguments[i];
    if (parameter.is_token) {
      if (parameter.type.is_tensor()) define_empty(context, id);
      continue;
    }
    LocalParameter made;
    const auto annotated = of_rank(context.input.argument_shardings[i], parameter.type.rank());
    const ShardLayout layout = describe(context, parameter, annotated, made);
    made.value = context.builder.add_value(parameter.type.tensor, layout, 0, context.name(id));
    made.position = position++;
    made.is_donated = parameter.aliases_output.has_value() || parameter.is_donor;
    context.define(id, made.value);
    body.arguments.push_back(made.value);
    context.builder.program().arguments.push_back(std::move(made));
  }
}

void lower_results(LoweringContext& context, const std::vector<ir::ValueId>& returned, LocalBlock& body) {
  Builder& builder = context.builder;
  const ir::Location& location = context.main.location;
  int64_t position = 0;
  for (size_t i = 0; i < context.main.results.size(); ++i) {
    const ir::Parameter& parameter = context.main.results[i];
    if (parameter.is_token) continue;
    LocalParameter made;
    const auto annotated = of_rank(context.input.result_shardings[i], parameter.type.rank());
    const ShardLayout layout = describe(context, parameter, annotated, made);
    const Builder::Mark mark = builder.mark();
    const LocalId value = context.local(returned[i]);
    made.value = builder.reshard(value, with_terms(context, value, layout, unreduced_sub_axes(context, annotated)),
                                 location, fmt::format("result {}", position));
    if (have_other_axes(sharding_of(context, returned[i]), annotated)) builder.mark_unruled(mark);
    made.value = builder.vary(made.value, builder.layout(made.value).mask(), location, "result");
    made.position = position++;
    // An unreduced value is in parts along its axes: the other parts contribute 0.
    if (builder.layout(made.value) != layout) made.sharding = layout_sharding(builder.program(), made.value);
    made.result_info = parameter.result_info;
    made.size_places = parameter.size_places;
    made.is_sizes = parameter.is_sizes;
    body.results.push_back(made.value);
    builder.program().results.push_back(std::move(made));
  }
}

}  // namespace meshd::partition
