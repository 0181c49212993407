module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}], replicated={"x"}>}, %arg2: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", ?}]>}) -> (tensor<16x32xf32>, tensor<32x32xf32>, tensor<2x64xf32>) {
    %v1 = "stablehlo.dot_general"(%arg2, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<32x32xf32>)
    %v8:2 = sdy.manual_computation(%arg1, %arg2) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{?}, {"x", "y":(1)2, ?}]>] out_shardings=[<@mesh, [{?}, {"x", "y", ?}]>, <@mesh, [{"y":(2)2}, {"x", ?}]>] manual_axes={"x"} (%v2a0: tensor<2xf32>, %v2a1: tensor<16x8xf32>) {
    %v7 = sdy.manual_computation(%v2a0) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{?}, {}]>] manual_axes={"y"} (%v3a0: tensor<2xf32>) {
    %v4 = "stablehlo.broadcast_in_dim"(%v3a0) {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> (tensor<2x16xf32>)
    %v5 = "stablehlo.reverse"(%v4) {dimensions = array<i64: 0>} : (tensor<2x16xf32>) -> (tensor<2x16xf32>)
    %v6 = "stablehlo.broadcast_in_dim"(%v4) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x16xf32>) -> (tensor<2x32x16xf32>)
    sdy.return %v5 : tensor<2x16xf32>
    } : (tensor<2xf32>) -> (tensor<2x16xf32>)
    sdy.return %v7, %v7 : tensor<2x16xf32>, tensor<2x16xf32>
    } : (tensor<8xf32>, tensor<16x32xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>)
    %v9 = sdy.sharding_constraint %arg2 <@mesh, [{}, {?}]> : tensor<16x32xf32>
    %v10 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<16x32xi32>)
    %v11 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v12 = "stablehlo.broadcast_in_dim"(%v11) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<16x32xi32>)
    %v13 = "stablehlo.compare"(%v10, %v12) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<16x32xi32>, tensor<16x32xi32>) -> (tensor<16x32xi1>)
    %v14 = "stablehlo.select"(%v13, %arg2, %arg2) {} : (tensor<16x32xi1>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>)
    return %v14, %v1, %v8#1 : tensor<16x32xf32>, tensor<32x32xf32>, tensor<2x64xf32>
  }
}
