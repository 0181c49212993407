// Constants, tokens, tuples, ids and barriers: ops that the stages understand by themselves.
#include <fmt/core.h>

#include <cstring>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/rewrites/batching.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

using tensor::DType;

std::vector<ir::Type> infer_constant(const OpView& view) {
  expect_operand_count(view, "constant", 0);
  const ir::Attribute* value = ir::find(attributes_of(view), "value");
  const auto* dense = value == nullptr ? nullptr : value->as<ir::DenseAttr>();
  if (dense == nullptr) reject(view, "constant I1: value must be dense<...>");
  // The elements of a quantised constant are written as signless integers of its storage type's width.
  if (view.results.size() == 1 && view.results[0].is_quantized()) {
    const ir::Type& result = view.results[0];
    const DType given = dense->type.dtype;
    if (!tensor::is_integer(given) || tensor::row(given).bits != tensor::row(result.dtype()).bits ||
        dense->type.dims != result.dims()) {
      reject(view, fmt::format("constant C1: value is {}, but the result is {}",
                               ir::to_string(ir::Type::of(dense->type)), ir::to_string(result)));
    }
    return {result};
  }
  return agree(view, "constant C1", {ir::Type::of(dense->type)});
}

std::vector<ir::Type> infer_token(const OpView& view) {
  for (size_t i = 0; i < view.operands.size(); ++i) {
    if (!view.operands[i].is_token())
      reject(view, "after_all I1: operands must be tokens, got " + operand_text(view, i));
  }
  return agree(view, "after_all", {ir::Type::token()});
}

std::vector<ir::Type> infer_same_as_operands(const OpView& view) {
  return agree(view, "optimization_barrier C1", {view.operands.begin(), view.operands.end()});
}

std::vector<ir::Type> infer_tuple(const OpView& view) {
  ir::Type tuple;
  tuple.kind = ir::TypeKind::kTuple;
  tuple.elements.assign(view.operands.begin(), view.operands.end());
  return agree(view, "tuple C1", {std::move(tuple)});
}

std::vector<ir::Type> infer_get_tuple_element(const OpView& view) {
  expect_operand_count(view, "get_tuple_element", 1);
  if (view.operands[0].kind != ir::TypeKind::kTuple) {
    reject(view, "get_tuple_element I1: operand must be a tuple, got " + operand_text(view, 0));
  }
  const auto& elements = view.operands[0].elements;
  const int64_t index = ir::int_or(attributes_of(view), "index", 0);
  if (index < 0 || index >= static_cast<int64_t>(elements.size())) {
    reject(view, fmt::format("get_tuple_element C1: index must be below {}, got {}", elements.size(), index));
  }
  return agree(view, "get_tuple_element C2", {elements[static_cast<size_t>(index)]});
}

std::vector<ir::Type> infer_id(const OpView& view) {
  expect_operand_count(view, "partition_id", 0);
  return agree(view, "partition_id", {ir::Type::of({DType::kUint32, {}})});
}

int64_t measured_dimension(const OpView& view) { return ir::int_or(attributes_of(view), "dimension", 0); }

std::vector<ir::Type> infer_get_dimension_size(const OpView& view) {
  expect_tensor_operands(view, "get_dimension_size", 1);
  const int64_t dimension = measured_dimension(view);
  if (dimension < 0 || dimension >= view.operands[0].rank()) {
    reject(view, fmt::format("get_dimension_size C1: dimension must be below the rank of {}, got {}",
                             operand_text(view, 0), dimension));
  }
  return agree(view, "get_dimension_size", {ir::Type::of({DType::kInt32, {}})});
}

/// The size that the program means is the global one; local types do not have it, so it travels as an attribute.
constexpr std::string_view kGlobalSize = "meshd.global_size";

ir::AttributeList localize_get_dimension_size(const OpView& global, const OpView& /*local*/) {
  ir::AttributeList attributes = attributes_of(global);
  const int64_t size = global.operands[0].dims()[static_cast<size_t>(measured_dimension(global))];
  attributes.emplace_back(std::string(kGlobalSize), ir::integer_attr(size));
  return attributes;
}

PreparedKernel prepare_get_dimension_size(const OpView& local) {
  const int64_t local_size = local.operands[0].dims()[static_cast<size_t>(measured_dimension(local))];
  const auto size = static_cast<int32_t>(ir::int_or(attributes_of(local), kGlobalSize, local_size));
  PreparedKernel kernel;
  kernel.run = [size](const KernelCall& call) { std::memcpy(call.results[0], &size, sizeof(size)); };
  return kernel;
}

/// The operand may have any sharding: its elements are not read.
sharding::FactorRule rule_get_dimension_size(const OpView& view) {
  const tensor::Dims& dims = view.operands[0].dims();
  sharding::FactorRuleBuilder builder({dims}, {{}});
  for (int dim = 0; dim < static_cast<int>(dims.size()); ++dim)
    builder.factor({dim}, {-1}, dims[static_cast<size_t>(dim)]);
  return builder.build();
}

}  // namespace

std::vector<OpDef> structural_rows() {
  return {
      {.name = "stablehlo.constant",
       .summary = "a value written in the program",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<2x2xf32> {
    %cst = stablehlo.constant dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
    return %cst : tensor<2x2xf32>
  }
}
)",
       .signature = {.attributes = {{"value", true, "the elements"}}},
       .text = {.shape = TextShape::kConstant},
       .infer = infer_constant,
       .quantized = kQuantizedHeld,
       .body = Structural::kConstant},
      {.name = "sdy.constant",
       .summary = "a value written in the program, as Shardy prints it after import",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<2xi32> {
    %0 = sdy.constant dense<[1, 2]> : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
)",
       .signature = {.attributes = {{"value", true, "the elements"}}},
       .text = {.shape = TextShape::kConstant},
       .infer = infer_constant,
       .body = Structural::kConstant},
      {.name = "stablehlo.after_all",
       .summary = "a token that comes after all its operands",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = stablehlo.after_all %0, %0 : !stablehlo.token
    return %arg0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_max = -1},
       .infer = infer_token,
       .body = Structural::kAfterAll},
      {.name = "stablehlo.create_token",
       .summary = "a token that comes after nothing",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    return %arg0 : tensor<4xf32>
  }
}
)",
       .infer = infer_token,
       .body = Structural::kAfterAll},
      {.name = "stablehlo.optimization_barrier",
       .summary = "its operands, none available before all are",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>) {
    %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<4xf32>, tensor<2xi32>
    return %0#0, %0#1 : tensor<4xf32>, tensor<2xi32>
  }
}
)",
       .signature = {.operand_max = -1},
       .text = {.types = TextTypes::kEach},
       .infer = infer_same_as_operands,
       .quantized = kQuantizedHeld,
       .body = Structural::kOptimizationBarrier,
       .result_is_operand = true,
       .derivative = {vjp_identity},
       .batch = batch_leading},
      {.name = "stablehlo.tuple",
       .summary = "several values as one",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) -> tensor<2xi32> {
    %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<2xi32>>
    %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
}
)",
       .signature = {.operand_max = -1},
       .text = {.types = TextTypes::kTupleElements},
       .infer = infer_tuple,
       .quantized = kQuantizedHeld,
       .body = Structural::kTuple},
      {.name = "stablehlo.get_tuple_element",
       .summary = "one of the values of a tuple",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) -> tensor<4xf32> {
    %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<2xi32>>
    %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"index", true, "which value, from 0"}}},
       .text = {.shape = TextShape::kGetTupleElement},
       .infer = infer_get_tuple_element,
       .quantized = kQuantizedHeld,
       .body = Structural::kGetTupleElement},
      {.name = "stablehlo.partition_id",
       .summary = "the place in the mesh of the device that runs it",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<ui32> {
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
)",
       .infer = infer_id,
       .body = Structural::kPartitionId},
      {.name = "stablehlo.replica_id",
       .summary = "which copy of the program the device runs",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<ui32> {
    %0 = stablehlo.replica_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
)",
       .infer = infer_id,
       .body = Structural::kReplicaId},
      {.name = "stablehlo.get_dimension_size",
       .summary = "the size of one dimension, as a scalar",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<3x4xf32>) -> tensor<i32> {
    %0 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<3x4xf32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"dimension", true, "which dimension"}}},
       .text = {.fields = {{"dim", FieldKind::kInt, "dimension"}}},
       .infer = infer_get_dimension_size,
       .bounded = BoundedForm::kGetSize,
       .quantized = kQuantizedHeld,
       .rule = rule_get_dimension_size,
       .body = LocalKernel{prepare_get_dimension_size},
       .localize = localize_get_dimension_size,
       .reads_shapes_only = true},
  };
}

}  // namespace meshd::ops
