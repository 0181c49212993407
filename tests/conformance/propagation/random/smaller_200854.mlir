module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<4x4x4xf32>) -> (tensor<4x32xf32>, tensor<4x8x4xf32>, tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %v3:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{}, {"x"}, {}]>, <@mesh, [{}, {}, {}]>] manual_axes={"x", "y"} (%v1a0: tensor<4x4x4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    sdy.return %v2, %v2 : tensor<4x4x4xf32>, tensor<4x4x4xf32>
    } : (tensor<4x4x4xf32>) -> (tensor<4x8x4xf32>, tensor<4x4x4xf32>)
    %v4 = "stablehlo.gather"(%v3#1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 4>, indices_are_sorted = false} : (tensor<4x4x4xf32>, tensor<4x1xi32>) -> (tensor<4x4x4xf32>)
    %v6:2 = "func.call"(%v3#0, %arg3) {callee = @f1} : (tensor<4x8x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>)
    return %v6#1, %v3#0, %v6#0 : tensor<4x32xf32>, tensor<4x8x4xf32>, tensor<4x32xf32>
  }
  func.func private @f1(%arg0: tensor<4x8x4xf32>, %arg1: tensor<4x4x4xf32>) -> (tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<4x32xf32>) {
    %v5 = "stablehlo.reshape"(%arg0) {} : (tensor<4x8x4xf32>) -> (tensor<4x32xf32>)
    return %v5, %v5 : tensor<4x32xf32>, tensor<4x32xf32>
  }
}
