module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x"}, {"y"}]>}, %arg2: tensor<4x1xi32>, %arg3: tensor<4x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}], unreduced={"x"}>}) {
    %v1 = "stablehlo.tanh"(%arg0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v2:2 = "stablehlo.optimization_barrier"(%v1, %v1) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %v3 = "stablehlo.scatter"(%arg1, %arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> (tensor<8x4xf32>)
    return %v3 : tensor<8x4xf32>
  }
}
