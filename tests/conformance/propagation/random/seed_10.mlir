module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<16x4xf32>, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg2: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg3: tensor<16x8xf32>, %arg4: tensor<8x8xf32>, %arg5: tensor<i32>) -> (tensor<16x8xf32>) {
    %v1 = "stablehlo.scatter"(%arg1, %arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<16x1xi32>, tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v2 = "stablehlo.dynamic_update_slice"(%arg1, %arg4, %arg5, %arg5) {} : (tensor<16x8xf32>, tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<16x8xf32>)
    %v3 = "stablehlo.sort"(%arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    return %v3 : tensor<16x8xf32>
  }
}
