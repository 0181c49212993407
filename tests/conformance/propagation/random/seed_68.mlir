module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<16x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}, {"y", ?}]>}, %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}], replicated={"x"}>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg3: tensor<3x32x8xf32>, %arg4: tensor<16x16x32xf32>, %arg5: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x", ?}]>}) -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, tensor<16x4x16xf32>, tensor<16x16x8xf32>, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}]>}) {
    %v1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<16x4x16xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<16x4x16xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<16x4x16xi32>, tensor<16x4x16xi32>) -> (tensor<16x4x16xi1>)
    %v5 = "stablehlo.select"(%v4, %arg0, %arg0) {} : (tensor<16x4x16xi1>, tensor<16x4x16xf32>, tensor<16x4x16xf32>) -> (tensor<16x4x16xf32>)
    %v6 = "stablehlo.reshape"(%arg1) {} : (tensor<8x16xf32>) -> (tensor<2x4x16xf32>)
    %v7 = "stablehlo.convolution"(%arg4, %arg3) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x32xf32>, tensor<3x32x8xf32>) -> (tensor<16x16x8xf32>)
    %v8 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<8x16xi32>)
    %v9 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<8x16xi32>)
    %v11 = "stablehlo.compare"(%v8, %v10) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<8x16xi32>, tensor<8x16xi32>) -> (tensor<8x16xi1>)
    %v12 = "stablehlo.select"(%v11, %arg1, %arg1) {} : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>)
    %v13 = "stablehlo.concatenate"(%v12, %arg5) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x32xf32>)
    return %v13, %v5, %v7, %v12 : tensor<8x32xf32>, tensor<16x4x16xf32>, tensor<16x16x8xf32>, tensor<8x16xf32>
  }
}
