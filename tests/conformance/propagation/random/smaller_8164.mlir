module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg2: tensor<16x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "z"}p1, {?}, {?}]>}, %arg3: tensor<16x1xi32>, %arg4: tensor<16x1xi32>, %arg14: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>) {
    %v8:2 = "func.call"(%arg2, %arg2, %arg3) {callee = @f1} : (tensor<16x32x16xf32>, tensor<16x32x16xf32>, tensor<16x1xi32>) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>)
    %v9:2 = "func.call"(%v8#0, %arg4) {callee = @f2, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "z"}, {?}, {}]>, <@mesh, [{"z", ?}, {}, {?}]>]>} : (tensor<16x32x16xf32>, tensor<16x1xi32>) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>)
    %v40:2 = "func.call"(%v9#0, %v8#1, %arg14) {callee = @f1} : (tensor<16x32x16xf32>, tensor<16x32x16xf32>, tensor<16x1xi32>) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>)
    return %v40#1, %v9#0 : tensor<16x32x16xf32>, tensor<16x32x16xf32>
  }
  func.func private @f2(%arg0: tensor<16x32x16xf32>, %arg1: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {"z", ?}]>}) {
    %v1 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32, 16>, indices_are_sorted = false} : (tensor<16x32x16xf32>, tensor<16x1xi32>) -> (tensor<16x32x16xf32>)
    %v2 = "stablehlo.reverse"(%arg0) {dimensions = array<i64: 0>} : (tensor<16x32x16xf32>) -> (tensor<16x32x16xf32>)
    return %v1, %v2 : tensor<16x32x16xf32>, tensor<16x32x16xf32>
  }
  func.func private @f1(%arg0: tensor<16x32x16xf32>, %arg1: tensor<16x32x16xf32>, %arg2: tensor<16x1xi32>) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>) {
    %v3:2 = "func.call"(%arg1, %arg2) {callee = @f2} : (tensor<16x32x16xf32>, tensor<16x1xi32>) -> (tensor<16x32x16xf32>, tensor<16x32x16xf32>)
    return %v3#1, %v3#1 : tensor<16x32x16xf32>, tensor<16x32x16xf32>
  }
}
