module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<32x8x4xf32>, %arg1: tensor<32x8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {}]>}, %arg2: tensor<4x32xf32>, %arg3: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg4: tensor<4x8x32xf32>) -> (tensor<32x8x32xf32>, tensor<32x8x32xf32>) {
    %v1 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false} : (tensor<32x8x4xf32>, tensor<32x8x1xi32>) -> (tensor<32x8x4xf32>)
    %v2 = "stablehlo.dot_general"(%arg0, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<32x8x4xf32>, tensor<4x32xf32>) -> (tensor<32x8x32xf32>)
    %v3 = "stablehlo.scatter"(%v2, %arg3, %arg4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x8x32xf32>, tensor<4x1xi32>, tensor<4x8x32xf32>) -> (tensor<32x8x32xf32>)
    %v4 = "stablehlo.sort"(%arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<32x8x4xf32>) -> (tensor<32x8x4xf32>)
    %v7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v5:3 = stablehlo.while(%v5i0 = %v3, %v5i1 = %v3, %v5c = %v7) : tensor<32x8x32xf32>, tensor<32x8x32xf32>, tensor<i32> cond {
    %v5l = stablehlo.constant dense<4> : tensor<i32>
    %v5q = stablehlo.compare LT, %v5c, %v5l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v5q : tensor<i1>
    } do {
    %v5o = stablehlo.constant dense<1> : tensor<i32>
    %v5j = stablehlo.add %v5c, %v5o : tensor<i32>
    %v6 = "stablehlo.reverse"(%v5i1) {dimensions = array<i64: 1>} : (tensor<32x8x32xf32>) -> (tensor<32x8x32xf32>)
    stablehlo.return %v6, %v6, %v5j : tensor<32x8x32xf32>, tensor<32x8x32xf32>, tensor<i32>
    }
    return %v5#1, %v3 : tensor<32x8x32xf32>, tensor<32x8x32xf32>
  }
}
