// The rows of sdy.* ops, the sharding annotations of a program. Propagation and partition implement them; types are
// checked here.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/core/checked_math.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/fixed_string.h"
#include "service/ops/pointwise/pointwise.h"
#include "service/ops/quantized.h"
#include "service/ops/rewrites/batching.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

const std::vector<sharding::TensorSharding>& shardings_of(const OpView& view, const std::string& op,
                                                          std::string_view name, size_t count) {
  const ir::Attribute* attribute = ir::find(attributes_of(view), name);
  const auto* list = attribute == nullptr ? nullptr : attribute->as<ir::ShardingAttr>();
  if (list == nullptr) reject(view, op + ": attribute '" + std::string(name) + "' must be a list of shardings");
  if (list->shardings.size() != count) {
    reject(view, fmt::format("{}: {} must have one sharding for each value ({} shardings, {} values)", op, name,
                             list->shardings.size(), count));
  }
  return list->shardings;
}

template <FixedString kName>
std::vector<ir::Type> infer_identity(const OpView& view) {
  expect_tensor_operands(view, kName.view(), 1);
  return agree(view, kName.view(), {view.operands[0]});
}

template <FixedString kName>
std::vector<ir::Type> infer_annotation(const OpView& view) {
  std::vector<ir::Type> results = infer_identity<kName>(view);
  const auto& list = shardings_of(view, std::string(kName.view()), "sharding", 1);
  const bool any_rank = list[0].mesh->is_maximal() && list[0].dims.empty();
  if (list[0].rank() != results[0].rank() && !any_rank) {
    reject(view, "invalid_spec",
           fmt::format("{}: the sharding has {} dimensions, {} has {}", kName.view(), list[0].rank(),
                       ir::to_string(results[0]), results[0].rank()));
  }
  return results;
}

std::vector<ir::Type> infer_group(const OpView& view) {
  expect_tensor_operands(view, "sharding_group", 1);
  return agree(view, "sharding_group", {});
}

std::vector<ir::Type> infer_barrier(const OpView& view) {
  const std::string direction = ir::string_or(attributes_of(view), "allowed_direction", "");
  if (direction != "NONE" && direction != "FORWARD" && direction != "BACKWARD" && direction != "BOTH") {
    reject(view,
           "propagation_barrier: allowed_direction must be NONE, FORWARD, BACKWARD or BOTH, got '" + direction + "'");
  }
  return infer_identity<"propagation_barrier">(view);
}

std::vector<std::string> manual_axes(const OpView& view) {
  const ir::Attribute* attribute = ir::find(attributes_of(view), "manual_axes");
  const auto* list = attribute == nullptr ? nullptr : attribute->as<ir::ArrayAttr>();
  if (list == nullptr) reject(view, "manual_computation: attribute 'manual_axes' must be a list of axis names");
  std::vector<std::string> names;
  for (const ir::Attribute& entry : list->values) {
    if (const auto* name = entry.as<ir::StringAttr>()) names.push_back(name->value);
  }
  return names;
}

/// The type inside of the computation: dimensions sharded by the manual axes of `sharding`, which must come before the
/// free ones.
ir::Type inner_type(const OpView& view, const ir::Type& type, const sharding::TensorSharding& sharding,
                    const std::vector<std::string>& manual, const std::string& what) {
  if (!type.is_tensor()) return type;
  if (sharding.rank() != type.rank()) {
    reject(view, "invalid_spec",
           fmt::format("manual_computation: the sharding of {} has {} dimensions, {} has {}", what, sharding.rank(),
                       ir::to_string(type), type.rank()));
  }
  ir::Type inner = type;
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim) {
    bool free_seen = false;
    int64_t parts = 1;
    for (const sharding::AxisRef& axis : sharding.dims[dim].axes) {
      const std::string& name = sharding.mesh->axes[static_cast<size_t>(axis.axis)].name;
      const bool is_manual = std::find(manual.begin(), manual.end(), name) != manual.end();
      if (is_manual && free_seen) {
        reject(view, fmt::format("manual_computation: manual axes must come before free axes in dimension {} of {}; "
                                 "'{}' comes after a free one",
                                 dim, what, name));
      }
      free_seen = free_seen || !is_manual;
      if (is_manual) parts = core::checked_mul(parts, sharding::axis_size(axis, *sharding.mesh));
    }
    int64_t& size = inner.tensor.dims[dim];
    if (size != tensor::kDynamicDim) size = core::ceil_div(size, parts);
  }
  return inner;
}

void expect_inner(const OpView& view, const std::string& what, std::span<const ir::Type> outer,
                  const std::vector<sharding::TensorSharding>& shardings, const std::vector<ir::Type>& inner,
                  const std::vector<std::string>& manual) {
  if (inner.size() != outer.size()) {
    reject(view,
           fmt::format("manual_computation: the body has {} {}s, the op has {}", inner.size(), what, outer.size()));
  }
  for (size_t i = 0; i < outer.size(); ++i) {
    const std::string name = fmt::format("{} {}", what, i);
    const ir::Type expected = inner_type(view, outer[i], shardings[i], manual, name);
    if (compatible(expected, inner[i])) continue;
    reject(view, fmt::format("manual_computation: {} of the body must have the local type (expected {}, got {})", name,
                             ir::to_string(expected), ir::to_string(inner[i])));
  }
}

std::vector<ir::Type> infer_manual(const OpView& view) {
  const std::vector<std::string> manual = manual_axes(view);
  const ir::Region& body = view.regions[0];
  const auto& in = shardings_of(view, "manual_computation", "in_shardings", view.operands.size());
  const auto& out = shardings_of(view, "manual_computation", "out_shardings", view.results.size());
  expect_inner(view, "argument", view.operands, in, argument_types(view, body), manual);
  expect_inner(view, "result", view.results, out, returned_types(view, body), manual);
  return {view.results.begin(), view.results.end()};
}

std::vector<ir::Type> infer_named(const OpView& view) {
  const ir::Region& body = view.regions[0];
  const std::vector<ir::Type> operands(view.operands.begin(), view.operands.end());
  if (argument_types(view, body) != operands) {
    reject(view, "named_computation: the body must take the operands (expected " + types_text(operands) + ", got " +
                     types_text(argument_types(view, body)) + ")");
  }
  return agree(view, "named_computation", returned_types(view, body));
}

/// The batch dimension is open: propagation shards it as it shards the rest of the program.
Batched batch_constraint(const Batching& b) {
  sharding::TensorSharding sharding = shardings_of(b.view, "sharding_constraint", "sharding", 1)[0];
  if (sharding.mesh->is_maximal()) return std::nullopt;
  sharding.dims.insert(sharding.dims.begin(), sharding::DimSharding{{}, true, std::nullopt});
  return b.rewritten({b.batched(0)}, {{"sharding", ir::Attribute{ir::ShardingAttr{{std::move(sharding)}}}}});
}

}  // namespace

std::vector<OpDef> sharding_rows() {
  return {
      {.name = "sdy.sharding_constraint",
       .summary = "its operand, which must have the given sharding here",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {?}]> : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"sharding", true, "the sharding"}}},
       .text = {.shape = TextShape::kShardingConstraint},
       .infer = infer_annotation<"sharding_constraint">,
       .quantized = kQuantizedHeld,
       .rule = pointwise_rule,
       .body = Structural::kShardingConstraint,
       .result_is_operand = true,
       .derivative = {vjp_identity},
       .batch = batch_constraint},
      {.name = "sdy.reshard",
       .summary = "its operand, brought to the given sharding",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"sharding", true, "the sharding"}}},
       .text = {.shape = TextShape::kShardingConstraint},
       .infer = infer_annotation<"reshard">,
       .quantized = kQuantizedHeld,
       .body = Structural::kReshard,
       .result_is_operand = true,
       .derivative = {vjp_identity}},
      {.name = "sdy.sharding_group",
       .summary = "values of one group get one sharding",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
    sdy.sharding_group %arg0 group_id=0 : tensor<4x3xf32>
    sdy.sharding_group %arg1 group_id=0 : tensor<4x3xf32>
    return %arg0, %arg1 : tensor<4x3xf32>, tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"group_id", true, "which group"}}},
       .text = {.shape = TextShape::kShardingGroup},
       .infer = infer_group,
       .body = Structural::kShardingGroup,
       .has_effect = true},
      {.name = "sdy.propagation_barrier",
       .summary = "its operand; shardings pass in the allowed direction only",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = sdy.propagation_barrier %arg0 allowed_direction=FORWARD : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"allowed_direction", true, "NONE, FORWARD, BACKWARD or BOTH"}}},
       .text = {.shape = TextShape::kPropagationBarrier},
       .infer = infer_barrier,
       .quantized = kQuantizedHeld,
       .body = Structural::kPropagationBarrier,
       .result_is_operand = true,
       .derivative = {vjp_identity}},
      {.name = "sdy.manual_computation",
       .summary = "a body that every device runs on its own part along the manual axes",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg1: tensor<2x3xf32>) {
      %1 = stablehlo.add %arg1, %arg1 : tensor<2x3xf32>
      sdy.return %1 : tensor<2x3xf32>
    } : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"in_shardings", true, "of the operands"},
                                    {"out_shardings", true, "of the results"},
                                    {"manual_axes", true, "axes that the body itself handles"}}},
       .text = {.shape = TextShape::kManualComputation},
       .infer = infer_manual,
       .quantized = kQuantizedHeld,
       .body = Structural::kManualComputation},
      {.name = "sdy.named_computation",
       .summary = "a body with a name: a call written in place",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%arg1: tensor<4x3xf32>) {
      %1 = stablehlo.add %arg1, %arg1 : tensor<4x3xf32>
      sdy.return %1 : tensor<4x3xf32>
    } : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"name", true, "of the computation"},
                                    {"in_shardings", false, "of the operands"},
                                    {"out_shardings", false, "of the results"}}},
       .text = {.shape = TextShape::kNamedComputation},
       .infer = infer_named,
       .quantized = kQuantizedHeld,
       .body = Structural::kNamedComputation},
  };
}

}  // namespace meshd::ops
