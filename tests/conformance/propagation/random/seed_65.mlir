module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<8x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}, {?}]>}, %arg1: tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, %arg2: tensor<16x16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}, {?}]>}) -> (tensor<16x16x4xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce"(%arg1, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x8x4xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v3 = "stablehlo.gather"(%arg1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false} : (tensor<16x8x4xf32>, tensor<16x16x1xi32>) -> (tensor<16x16x4xf32>)
    return %v3 : tensor<16x16x4xf32>
  }
}
