module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8x8x16xf32>, %arg2: tensor<8x8x1xi32>, %arg3: tensor<32x64xf32>, %arg4: tensor<8x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {?}]>}, %arg5: tensor<8x8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x", ?}, {}, {?}]>}) -> (tensor<8x8x16xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce_window"(%arg1, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<8x8x16xf32>, tensor<f32>) -> (tensor<8x8x8xf32>)
    %v9:2 = "func.call"(%arg1, %arg0, %arg2, %arg3, %arg4) {callee = @f1} : (tensor<8x8x16xf32>, tensor<4xf32>, tensor<8x8x1xi32>, tensor<32x64xf32>, tensor<8x16x8xf32>) -> (tensor<2x16x64xf32>, tensor<8x8x16xf32>)
    %v10:2 = "func.call"(%v9#1, %arg0, %arg5, %arg3, %arg4) {callee = @f1} : (tensor<8x8x16xf32>, tensor<4xf32>, tensor<8x8x1xi32>, tensor<32x64xf32>, tensor<8x16x8xf32>) -> (tensor<2x16x64xf32>, tensor<8x8x16xf32>)
    return %v10#1 : tensor<8x8x16xf32>
  }
  func.func private @f1(%arg0: tensor<8x8x16xf32>, %arg1: tensor<4xf32>, %arg2: tensor<8x8x1xi32>, %arg3: tensor<32x64xf32>, %arg4: tensor<8x16x8xf32>) -> (tensor<2x16x64xf32>, tensor<8x8x16xf32>) {
    %v3 = "stablehlo.gather"(%arg0, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 16>, indices_are_sorted = false} : (tensor<8x8x16xf32>, tensor<8x8x1xi32>) -> (tensor<8x8x16xf32>)
    %v7 = sdy.manual_computation(%arg0, %arg3) in_shardings=[<@mesh, [{}, {"y", ?}, {"x", "z", ?}]>, <@mesh, [{"y"}, {"x", ?}]>] out_shardings=[<@mesh, [{}, {"y", ?}, {"z", ?}]>] manual_axes={"x", "y", "z"} (%v4a0: tensor<8x2x4xf32>, %v4a1: tensor<8x32xf32>) {
    %v5 = "stablehlo.dot_general"(%v4a0, %v4a1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x2x4xf32>, tensor<8x32xf32>) -> (tensor<2x4x32xf32>)
    %v6 = "stablehlo.slice"(%v4a0) {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 4, 2, 4>, strides = array<i64: 1, 1, 1>} : (tensor<8x2x4xf32>) -> (tensor<4x2x4xf32>)
    sdy.return %v5 : tensor<2x4x32xf32>
    } : (tensor<8x8x16xf32>, tensor<32x64xf32>) -> (tensor<2x16x64xf32>)
    %v8 = "stablehlo.dot_general"(%v3, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> (tensor<8x8x8xf32>)
    return %v7, %v3 : tensor<2x16x64xf32>, tensor<8x8x16xf32>
  }
}
