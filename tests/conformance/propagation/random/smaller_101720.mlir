module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}, %arg1: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}, %arg2: tensor<4x1xi32>, %arg3: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.dynamic_slice"(%arg0, %v1, %v2) {slice_sizes = array<i64: 8, 4>} : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<8x4xf32>)
    %v4 = "stablehlo.sort"(%v3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v6 = "stablehlo.pad"(%v4, %v5) {edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 8, 0>, interior_padding = array<i64: 0, 0>} : (tensor<8x4xf32>, tensor<f32>) -> (tensor<16x4xf32>)
    %v7 = "stablehlo.gather"(%v6, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<16x4xf32>, tensor<8x1xi32>) -> (tensor<8x4xf32>)
    %v8 = "stablehlo.transpose"(%v7) {permutation = array<i64: 0, 1>} : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
    %v9 = "stablehlo.scatter"(%v3, %arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> (tensor<8x4xf32>)
    return %v9, %v7 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
