module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8x16x32xf32>, %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2, ?}]>}, %arg3: tensor<4x4xf32>, %arg4: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<8x16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, %arg6: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, tensor<8x16x16xf32>, tensor<4x16x32xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce_window"(%arg1, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<8x16x32xf32>, tensor<f32>) -> (tensor<8x16x16xf32>)
    %v3 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 4, 0, 0>, limit_indices = array<i64: 8, 16, 32>, strides = array<i64: 1, 1, 1>} : (tensor<8x16x32xf32>) -> (tensor<4x16x32xf32>)
    %v5:2 = "func.call"(%arg0, %arg2, %arg3, %arg4) {callee = @f1} : (tensor<8xf32>, tensor<8xf32>, tensor<4x4xf32>, tensor<16x1xi32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
    %v6 = "stablehlo.gather"(%arg1, %arg5) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 32>, indices_are_sorted = false} : (tensor<8x16x32xf32>, tensor<8x16x1xi32>) -> (tensor<8x16x32xf32>)
    %v10 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7:3 = stablehlo.while(%v7i0 = %arg3, %v7i1 = %v6, %v7c = %v10) : tensor<4x4xf32>, tensor<8x16x32xf32>, tensor<i32> cond {
    %v7l = stablehlo.constant dense<4> : tensor<i32>
    %v7q = stablehlo.compare LT, %v7c, %v7l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v7q : tensor<i1>
    } do {
    %v7o = stablehlo.constant dense<1> : tensor<i32>
    %v7j = stablehlo.add %v7c, %v7o : tensor<i32>
    %v8 = "stablehlo.reverse"(%v7i0) {dimensions = array<i64: 0>} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    %v9 = "stablehlo.gather"(%v7i1, %arg6) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 32>, indices_are_sorted = false} : (tensor<8x16x32xf32>, tensor<8x1xi32>) -> (tensor<8x16x32xf32>)
    stablehlo.return %v8, %v9, %v7j : tensor<4x4xf32>, tensor<8x16x32xf32>, tensor<i32>
    }
    return %v7#1, %v2, %v3 : tensor<8x16x32xf32>, tensor<8x16x16xf32>, tensor<4x16x32xf32>
  }
  func.func private @f1(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<4x4xf32>, %arg3: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>}) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
    %v4 = "stablehlo.gather"(%arg2, %arg3) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<4x4xf32>, tensor<16x1xi32>) -> (tensor<16x4xf32>)
    return %v4, %v4 : tensor<16x4xf32>, tensor<16x4xf32>
  }
}
