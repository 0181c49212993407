module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y"}, {}]>}, %arg2: tensor<4x16x32xf32>, %arg3: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg4: tensor<8x8xf32>, %arg5: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "z", ?}, {"y", ?}]>}) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"z", "y", ?}]>}, tensor<4x2xf32>) {
    %v1 = "stablehlo.reshape"(%arg0) {} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    %v3:2 = "func.call"(%arg1, %arg3, %arg4) {callee = @f1} : (tensor<16x8xf32>, tensor<8x1xi32>, tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
    %v4 = "stablehlo.dot_general"(%v3#1, %arg5) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x8xf32>, tensor<16x16xf32>) -> (tensor<8x16xf32>)
    return %v4, %v1 : tensor<8x16xf32>, tensor<4x2xf32>
  }
  func.func @f1(%arg0: tensor<16x8xf32>, %arg1: tensor<8x1xi32>, %arg2: tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
    %v2 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<8x1xi32>, tensor<8x8xf32>) -> (tensor<16x8xf32>)
    return %v2, %v2 : tensor<16x8xf32>, tensor<16x8xf32>
  }
}
