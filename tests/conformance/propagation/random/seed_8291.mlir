module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<16xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y", ?}, {?}], replicated={"x"}>}, %arg3: tensor<8x1xi32>, %arg4: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
    %v2:2 = "func.call"(%arg1) {callee = @f1} : (tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %v3 = "stablehlo.gather"(%v2#0, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<8x4xf32>, tensor<4x1xi32>) -> (tensor<4x4xf32>)
    %v4 = "stablehlo.gather"(%v3, %arg3) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<4x4xf32>, tensor<8x1xi32>) -> (tensor<8x4xf32>)
    %v5:2 = "stablehlo.sort"(%v2#0, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %v6:2 = "func.call"(%arg4) {callee = @f1} : (tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    return %v6#1, %v2#0, %v5#1 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  func.func private @f1(%arg0: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", ?}, {?}]>}) {
    %v1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> (tensor<8x4xf32>)
    return %v1, %v1 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
