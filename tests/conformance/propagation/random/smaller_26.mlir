module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}, {}]>}, %arg1: tensor<4x16x4xf32>, %arg2: tensor<4x1xi32>, %arg3: tensor<16x4xf32>, %arg4: tensor<16x4xf32>) -> (tensor<16x4xf32>) {
    %v1 = "stablehlo.tanh"(%arg0) {} : (tensor<4x16x4xf32>) -> (tensor<4x16x4xf32>)
    %v3 = "func.call"(%arg1, %arg2) {callee = @f1} : (tensor<4x16x4xf32>, tensor<4x1xi32>) -> (tensor<4x16x4xf32>)
    %v4 = "stablehlo.dot_general"(%v3, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x16x4xf32>, tensor<16x4xf32>) -> (tensor<4x4x4xf32>)
    %v5 = "stablehlo.add"(%v4, %v4) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v11 = sdy.manual_computation(%arg3, %arg4) in_shardings=[<@mesh, [{"y"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%v6a0: tensor<16x4xf32>, %v6a1: tensor<16x4xf32>) {
    %v7:2 = "stablehlo.optimization_barrier"(%v6a0, %v6a0) {} : (tensor<16x4xf32>, tensor<16x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
    %v8 = "stablehlo.add"(%v7#1, %v6a1) {} : (tensor<16x4xf32>, tensor<16x4xf32>) -> (tensor<16x4xf32>)
    %v10 = "func.call"(%v8) {callee = @f2} : (tensor<16x4xf32>) -> (tensor<16x4xf32>)
    sdy.return %v10 : tensor<16x4xf32>
    } : (tensor<16x4xf32>, tensor<16x4xf32>) -> (tensor<16x4xf32>)
    return %v11 : tensor<16x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %arg1: tensor<4x1xi32>) -> (tensor<4x16x4xf32>) {
    %v2 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 4>, indices_are_sorted = false} : (tensor<4x16x4xf32>, tensor<4x1xi32>) -> (tensor<4x16x4xf32>)
    return %v2 : tensor<4x16x4xf32>
  }
  func.func private @f2(%arg0: tensor<16x4xf32>) -> (tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %v9 = "stablehlo.tanh"(%arg0) {} : (tensor<16x4xf32>) -> (tensor<16x4xf32>)
    return %v9 : tensor<16x4xf32>
  }
}
