// Rows of ops that move elements and compute nothing.
#include "service/ops/movement/movement.h"

#include "service/ops/families.h"
#include "service/ops/movement/movement_batch.h"
#include "service/ops/quantized.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {

std::vector<OpDef> movement_rows() {
  return {
      {.name = "stablehlo.reshape",
       .summary = "the same elements in another shape",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x6xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<2x6xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .region_count = 0},
       .propagation = {.flow = Flow::kPassThrough, .keeps_constants = true},
       .infer = infer_reshape,
       .bounded = BoundedForm::kReshape,
       .quantized = {.form = QuantizedForm::kStorage, .per_axis = true, .check = check_quantized_reshape},
       .rule = reshape_rule,
       .body = LocalKernel{prepare_reshape},
       .derivative = {vjp_reshape},
       .batch = batch_leading,
       .fuse = {.read = read_reshape}},
      {.name = "stablehlo.transpose",
       .summary = "dimensions in another order",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
    %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    return %0 : tensor<4x2x3xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"permutation", true, "result dim i is operand dim permutation[i]"}}},
       .text = {.fields = {{"dims", FieldKind::kIntArray, "permutation"}}},
       .propagation = {.flow = Flow::kPassThrough},
       .infer = infer_transpose,
       .bounded = BoundedForm::kTranspose,
       .quantized = {.form = QuantizedForm::kStorage, .per_axis = true, .check = check_quantized_transpose},
       .rule = transpose_rule,
       .body = LocalKernel{prepare_transpose},
       .derivative = {vjp_transpose},
       .batch = batch_transpose,
       .fuse = {.is_transpose = true}},
      {.name = "stablehlo.broadcast_in_dim",
       .summary = "elements repeated along new and one-sized dimensions",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"broadcast_dimensions", true, "result dim of each operand dim"}}},
       .text = {.fields = {{"dims", FieldKind::kIntArray, "broadcast_dimensions"}}},
       .propagation = {.flow = Flow::kBroadcast, .keeps_constants = true},
       .infer = infer_broadcast_in_dim,
       .bounded = BoundedForm::kBroadcast,
       .quantized = {.form = QuantizedForm::kStorage, .per_axis = true, .check = check_quantized_broadcast},
       .rule = broadcast_in_dim_rule,
       .body = LocalKernel{prepare_broadcast_in_dim},
       .new_dims_may_be_sharded = true,
       .derivative = {vjp_broadcast_in_dim},
       .batch = batch_broadcast_in_dim,
       .fuse = {.read = read_broadcast_in_dim}},
      {.name = "stablehlo.slice",
       .summary = "a part with constant bounds and strides",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.slice %arg0 [1:7:2, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"start_indices", true, "first index of each dim"},
                                    {"limit_indices", true, "index that each dim ends before"},
                                    {"strides", true, "step of each dim"}}},
       .text = {.shape = TextShape::kSlice},
       .propagation = {.keeps_constants = true},
       .infer = infer_slice,
       .bounded = BoundedForm::kSlice,
       .quantized = kQuantizedMoved,
       .rule = slice_rule,
       .body = LocalKernel{prepare_slice},
       .localize = localize_slice,
       .derivative = {vjp_slice},
       .batch = batch_slice,
       .fuse = {.read = read_slice},
       .halo = slice_halo},
      {.name = "stablehlo.dynamic_slice",
       .summary = "a window at computed start indices, which are clamped so that it lies inside",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<i32>) -> tensor<2x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [2, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = -1, .attributes = {{"slice_sizes", true, "size of each dim"}}},
       .text = {.fields = {{"sizes", FieldKind::kIntArray, "slice_sizes"}}},
       .propagation = {.flow = Flow::kPassThroughForward},
       .infer = infer_dynamic_slice,
       .bounded = BoundedForm::kDynamicSlice,
       .quantized = kQuantizedMoved,
       .rule = dynamic_slice_rule,
       .body = LocalKernel{prepare_dynamic_slice},
       .localize = localize_dynamic_slice,
       .derivative = {vjp_dynamic_slice},
       .batch = batch_dynamic_slice},
      {.name = "stablehlo.dynamic_update_slice",
       .summary =
           "the operand with a window replaced at computed start indices, which are clamped so that it lies inside",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<i32>) -> tensor<8x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %c : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
)",
       .signature = {.operand_min = 2, .operand_max = -1, .region_count = 0},
       .propagation = {.flow = Flow::kPassThroughForward},
       .infer = infer_dynamic_update_slice,
       .bounded = BoundedForm::kDynamicUpdateSlice,
       .quantized = kQuantizedInserted,
       .rule = dynamic_update_slice_rule,
       .body = LocalKernel{prepare_dynamic_update_slice},
       .on_shard = dynamic_update_slice_on_shard,
       .localize = localize_dynamic_update_slice,
       .derivative = {vjp_dynamic_update_slice},
       .batch = batch_dynamic_update_slice},
      {.name = "stablehlo.concatenate",
       .summary = "operands one after another along a dimension",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<5x4xf32> {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = -1, .attributes = {{"dimension", true, "along which"}}},
       .text = {.fields = {{"dim", FieldKind::kInt, "dimension"}}},
       .infer = infer_concatenate,
       .bounded = BoundedForm::kConcatenate,
       .quantized = kQuantizedJoined,
       .rule = concatenate_rule,
       .body = LocalKernel{prepare_concatenate},
       .derivative = {vjp_concatenate},
       .batch = batch_concatenate,
       .fuse = {.concatenation = prepare_concatenate_of},
       .halo = concatenate_halo},
      {.name = "stablehlo.pad",
       .summary = "elements added before, after and between; negative edge padding takes elements away",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<6x7xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.pad %arg0, %cst, low = [1, 0], high = [1, 2], interior = [0, 1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<6x7xf32>
    return %0 : tensor<6x7xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"edge_padding_low", true, "elements before index 0 of each dim"},
                                    {"edge_padding_high", true, "elements after the last index of each dim"},
                                    {"interior_padding", true, "elements between two of each dim"}}},
       .text = {.fields = {{"low", FieldKind::kIntArray, "edge_padding_low"},
                           {"high", FieldKind::kIntArray, "edge_padding_high"},
                           {"interior", FieldKind::kIntArray, "interior_padding"}}},
       .infer = infer_pad,
       .bounded = BoundedForm::kPad,
       .quantized = kQuantizedJoined,
       .rule = slice_rule,
       .body = LocalKernel{prepare_pad},
       .derivative = {vjp_pad},
       .batch = batch_pad,
       .halo = pad_halo},
      {.name = "stablehlo.reverse",
       .summary = "elements in reverse order along dimensions",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"dimensions", true, "which are reversed"}}},
       .text = {.fields = {{"dims", FieldKind::kIntArray, "dimensions"}}},
       .infer = infer_reverse,
       .bounded = BoundedForm::kReverse,
       .quantized = kQuantizedMoved,
       .rule = reverse_rule,
       .body = LocalKernel{prepare_reverse},
       .derivative = {vjp_reverse},
       .batch = batch_reverse,
       .fuse = {.read = read_reverse},
       .halo = reverse_halo},
      {.name = "stablehlo.iota",
       .summary = "each element is its index along a dimension",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<2x4xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<2x4xi32>
    return %0 : tensor<2x4xi32>
  }
}
)",
       .signature = {.attributes = {{"iota_dimension", true, "whose index is given"}}},
       .text = {.fields = {{"dim", FieldKind::kInt, "iota_dimension"}}},
       .infer = infer_iota,
       .quantized = kQuantizedMath,
       .body = LocalKernel{prepare_iota},
       .free_result_layout = true,
       .fuse = {.iota_dim = iota_dim}},
  };
}

}  // namespace meshd::ops
