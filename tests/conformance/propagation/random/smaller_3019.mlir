module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y", "x"}, {}, {}]>}, %arg1: tensor<32x1xi32>, %arg2: tensor<32x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {"y", "x"}, {}]>}, %arg3: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg4: tensor<8x4xf32>) -> (tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y", "x"}, {}]>}) {
    %v1 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4x4xf32>, tensor<32x1xi32>, tensor<32x4x4xf32>) -> (tensor<8x4x4xf32>)
    %v2 = "stablehlo.tanh"(%v1) {} : (tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>)
    %v3 = "stablehlo.add"(%v2, %arg3) {} : (tensor<8x4x4xf32>, tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>)
    %v4 = "stablehlo.dot_general"(%v3, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x4x4xf32>, tensor<8x4xf32>) -> (tensor<4x4x4xf32>)
    %v6 = "func.call"(%v4) {callee = @f1} : (tensor<4x4x4xf32>) -> (tensor<16x4xf32>)
    return %v6 : tensor<16x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4x4xf32>) -> (tensor<16x4xf32>) {
    %v5 = "stablehlo.reshape"(%arg0) {} : (tensor<4x4x4xf32>) -> (tensor<16x4xf32>)
    return %v5 : tensor<16x4xf32>
  }
}
