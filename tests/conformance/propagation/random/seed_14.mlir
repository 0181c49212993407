module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}, {?}], replicated={"y"}>}, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", "x"}]>}, %arg3: tensor<i32>, %arg4: tensor<4x1xi32>, %arg5: tensor<16x8x16xf32>) -> (tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"x", ?}]>}) {
    %v9 = "func.call"(%arg0, %arg3, %arg4) {callee = @f1} : (tensor<16x8x8xf32>, tensor<i32>, tensor<4x1xi32>) -> (tensor<16x8x8xf32>)
    %v10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v11 = "stablehlo.reduce_window"(%arg0, %v10) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<16x8x8xf32>, tensor<f32>) -> (tensor<16x8x4xf32>)
    %v12 = "stablehlo.dot_general"(%v9, %arg5) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<16x8x8xf32>, tensor<16x8x16xf32>) -> (tensor<16x8x16xf32>)
    return %v12 : tensor<16x8x16xf32>
  }
  func.func @f1(%arg0: tensor<16x8x8xf32>, %arg1: tensor<i32>, %arg2: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<16x8x8xf32>) {
    %v1 = "stablehlo.case"(%arg1) ({
    %v2 = "stablehlo.cholesky"(%arg0) {lower = true} : (tensor<16x8x8xf32>) -> (tensor<16x8x8xf32>)
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4 = "stablehlo.reduce"(%arg0, %v3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<16x8x8xf32>, tensor<f32>) -> (tensor<8x8xf32>)
    stablehlo.return %v2 : tensor<16x8x8xf32>
    }, {
    %v5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v6 = "stablehlo.pad"(%arg0, %v5) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 8, 0>, interior_padding = array<i64: 0, 0, 0>} : (tensor<16x8x8xf32>, tensor<f32>) -> (tensor<16x16x8xf32>)
    %v7 = "stablehlo.gather"(%v6, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 8>, indices_are_sorted = false} : (tensor<16x16x8xf32>, tensor<4x1xi32>) -> (tensor<4x16x8xf32>)
    %v8 = "stablehlo.negate"(%arg0) {} : (tensor<16x8x8xf32>) -> (tensor<16x8x8xf32>)
    stablehlo.return %v8 : tensor<16x8x8xf32>
    }) : (tensor<i32>) -> tensor<16x8x8xf32>
    return %v1 : tensor<16x8x8xf32>
  }
}
