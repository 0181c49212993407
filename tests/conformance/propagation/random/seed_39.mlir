module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<32x4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, %arg3: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg4: tensor<16x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x":(2)2, ?}, {?}, {"x":(1)2, ?}]>}) -> (tensor<16x16x16xf32>, tensor<32x4xf32>, tensor<16x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2, ?}, {?}, {}]>}, tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", "y", ?}, {?}]>}) {
    %v1 = "stablehlo.gather"(%arg1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<32x16xf32>, tensor<32x4x1xi32>) -> (tensor<32x4xf32>)
    %v2 = "stablehlo.dot_general"(%arg3, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<16x16x16xf32>, tensor<16x16x32xf32>) -> (tensor<16x16x32xf32>)
    %v3 = sdy.sharding_constraint %arg3 <@mesh, [{}, {?}, {}]> : tensor<16x16x16xf32>
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7 = "stablehlo.dynamic_slice"(%v2, %v4, %v5, %v6) {slice_sizes = array<i64: 16, 16, 16>} : (tensor<16x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x16x16xf32>)
    return %v7, %v1, %v2, %v3 : tensor<16x16x16xf32>, tensor<32x4xf32>, tensor<16x16x32xf32>, tensor<16x16x16xf32>
  }
}
