module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4, ?}, {"x":(1)2, "y"}p1]>}, %arg1: tensor<16x32x4xf32>, %arg2: tensor<i32>, %arg3: tensor<3x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {?}], replicated={"x"}>}, %arg4: tensor<16x16x8xf32>, %arg5: tensor<16x32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}p2, {?}p1, {}]>}) -> (tensor<16x32xf32>, tensor<16x32x4xf32>, tensor<4x256x32xf32>) {
    %v1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x32xf32>) -> (tensor<16x32x4xf32>)
    %v12 = "func.call"(%v1, %arg1) {callee = @f1} : (tensor<16x32x4xf32>, tensor<16x32x4xf32>) -> (tensor<4x256x32xf32>)
    %v13 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v14 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v15:2 = "stablehlo.reduce"(%arg1, %v1, %v13, %v14) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x32x4xf32>, tensor<16x32x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<16x32xf32>, tensor<16x32xf32>)
    %v16 = "stablehlo.case"(%arg2) ({
    %v17 = "stablehlo.convolution"(%arg4, %arg3) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x8xf32>, tensor<3x8x8xf32>) -> (tensor<16x16x8xf32>)
    %v18 = "stablehlo.negate"(%arg0) {} : (tensor<16x32xf32>) -> (tensor<16x32xf32>)
    stablehlo.return %v18 : tensor<16x32xf32>
    }, {
    %v19 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<16x32x4xi32>)
    %v20 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v21 = "stablehlo.broadcast_in_dim"(%v20) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<16x32x4xi32>)
    %v22 = "stablehlo.compare"(%v19, %v21) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<16x32x4xi32>, tensor<16x32x4xi32>) -> (tensor<16x32x4xi1>)
    %v23 = "stablehlo.select"(%v22, %arg1, %arg5) {} : (tensor<16x32x4xi1>, tensor<16x32x4xf32>, tensor<16x32x4xf32>) -> (tensor<16x32x4xf32>)
    %v24 = "stablehlo.negate"(%arg0) {} : (tensor<16x32xf32>) -> (tensor<16x32xf32>)
    stablehlo.return %v24 : tensor<16x32xf32>
    }) : (tensor<i32>) -> tensor<16x32xf32>
    return %v16, %v1, %v12 : tensor<16x32xf32>, tensor<16x32x4xf32>, tensor<4x256x32xf32>
  }
  func.func private @f2(%arg0: tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>, tensor<4x16x32xf32>) {
    %v9 = "stablehlo.multiply"(%arg0, %arg0) {} : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>)
    return %v9, %v9 : tensor<4x16x32xf32>, tensor<4x16x32xf32>
  }
  func.func private @f1(%arg0: tensor<16x32x4xf32>, %arg1: tensor<16x32x4xf32>) -> (tensor<4x256x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {"x", ?}]>}) {
    %v11 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {?}, {?}]>] out_shardings=[<@mesh, [{?}, {"x", "y"}, {?}]>] manual_axes={"x", "y"} (%v2a0: tensor<16x32x4xf32>) {
    %v3 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<16x32x4xi32>)
    %v4 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.broadcast_in_dim"(%v4) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<16x32x4xi32>)
    %v6 = "stablehlo.compare"(%v3, %v5) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<16x32x4xi32>, tensor<16x32x4xi32>) -> (tensor<16x32x4xi1>)
    %v7 = "stablehlo.select"(%v6, %v2a0, %v2a0) {} : (tensor<16x32x4xi1>, tensor<16x32x4xf32>, tensor<16x32x4xf32>) -> (tensor<16x32x4xf32>)
    %v8 = "stablehlo.transpose"(%v2a0) {permutation = array<i64: 2, 0, 1>} : (tensor<16x32x4xf32>) -> (tensor<4x16x32xf32>)
    %v10:2 = "func.call"(%v8) {callee = @f2} : (tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>, tensor<4x16x32xf32>)
    sdy.return %v10#0 : tensor<4x16x32xf32>
    } : (tensor<16x32x4xf32>) -> (tensor<4x256x32xf32>)
    return %v11 : tensor<4x256x32xf32>
  }
}
