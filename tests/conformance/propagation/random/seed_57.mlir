module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}, {}]>}, %arg1: tensor<32xf32>, %arg2: tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}, {}]>}, %arg3: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}, {?}]>}, %arg4: tensor<4x8x16xf32>, %arg5: tensor<i32>, %arg6: tensor<4x32x16xf32>, %arg7: tensor<16x8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {?}, {}, {}]>}, %arg8: tensor<3x4x16xf32>, %arg9: tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}, {"x", ?}]>}, %arg10: tensor<i32>, %arg11: tensor<4x8x16xf32>) -> (tensor<3x4x8xf32>) {
    %v18 = "func.call"(%arg3, %arg4, %arg5, %arg6, %arg7) {callee = @f1} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<i32>, tensor<4x32x16xf32>, tensor<16x8x4x4xf32>) -> (tensor<4x8x16xf32>)
    %v19 = "stablehlo.multiply"(%arg1, %arg1) {} : (tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>)
    %v20 = "stablehlo.convolution"(%arg9, %arg8) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<8x8x4xf32>, tensor<3x4x16xf32>) -> (tensor<8x8x16xf32>)
    %v21 = "stablehlo.case"(%arg10) ({
    %v22 = "stablehlo.cholesky"(%arg7) {lower = true} : (tensor<16x8x4x4xf32>) -> (tensor<16x8x4x4xf32>)
    %v23 = "stablehlo.cholesky"(%v22) {lower = true} : (tensor<16x8x4x4xf32>) -> (tensor<16x8x4x4xf32>)
    %v24 = "stablehlo.concatenate"(%v22, %arg7) {dimension = 1 : i64} : (tensor<16x8x4x4xf32>, tensor<16x8x4x4xf32>) -> (tensor<16x16x4x4xf32>)
    %v25 = "stablehlo.negate"(%arg11) {} : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>)
    stablehlo.return %v25 : tensor<4x8x16xf32>
    }, {
    %v28 = sdy.manual_computation(%v18) in_shardings=[<@mesh, [{"x", ?}, {?}, {"y"}]>] out_shardings=[<@mesh, [{"y", "x", ?}, {?}, {}]>] manual_axes={"y"} (%v26a0: tensor<4x8x4xf32>) {
    %v27 = "stablehlo.concatenate"(%v26a0, %v26a0) {dimension = 2 : i64} : (tensor<4x8x4xf32>, tensor<4x8x4xf32>) -> (tensor<4x8x8xf32>)
    sdy.return %v27 : tensor<4x8x8xf32>
    } : (tensor<4x8x16xf32>) -> (tensor<16x8x8xf32>)
    %v29 = "stablehlo.negate"(%v18) {} : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>)
    stablehlo.return %v29 : tensor<4x8x16xf32>
    }) : (tensor<i32>) -> tensor<4x8x16xf32>
    %v30 = "stablehlo.reshape"(%arg7) {} : (tensor<16x8x4x4xf32>) -> (tensor<16x32x4xf32>)
    %v31 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v32 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v33 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v34 = "stablehlo.dynamic_slice"(%arg8, %v31, %v32, %v33) {slice_sizes = array<i64: 3, 4, 8>} : (tensor<3x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<3x4x8xf32>)
    return %v34 : tensor<3x4x8xf32>
  }
  func.func private @f2(%arg0: tensor<16x8x4x4xf32>, %arg1: tensor<16x8x4x4xf32>) -> (tensor<16x8x4x16xf32>) {
    %v6 = "stablehlo.concatenate"(%arg0, %arg1) {dimension = 3 : i64} : (tensor<16x8x4x4xf32>, tensor<16x8x4x4xf32>) -> (tensor<16x8x4x8xf32>)
    %v7 = "stablehlo.concatenate"(%v6, %v6) {dimension = 3 : i64} : (tensor<16x8x4x8xf32>, tensor<16x8x4x8xf32>) -> (tensor<16x8x4x16xf32>)
    %v8 = "stablehlo.reshape"(%arg0) {} : (tensor<16x8x4x4xf32>) -> (tensor<16x32x4xf32>)
    return %v7 : tensor<16x8x4x16xf32>
  }
  func.func private @f1(%arg0: tensor<4x8x16xf32>, %arg1: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x", ?}, {?}]>}, %arg2: tensor<i32>, %arg3: tensor<4x32x16xf32>, %arg4: tensor<16x8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", ?}, {?}, {?}]>}) -> (tensor<4x8x16xf32>) {
    %v1 = "stablehlo.case"(%arg2) ({
    %v5 = sdy.manual_computation(%arg0, %arg0, %arg3) in_shardings=[<@mesh, [{"x"}, {}, {?}]>, <@mesh, [{"x"}, {?}, {"y", ?}]>, <@mesh, [{?}, {"y", "x", ?}, {}]>] out_shardings=[<@mesh, [{"y", "x", ?}, {}, {}, {}]>] manual_axes={"y"} (%v2a0: tensor<4x8x16xf32>, %v2a1: tensor<4x8x4xf32>, %v2a2: tensor<4x8x16xf32>) {
    %v3 = "stablehlo.add"(%v2a0, %v2a2) {} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>)
    %v4 = "stablehlo.reshape"(%v2a2) {} : (tensor<4x8x16xf32>) -> (tensor<4x8x4x4xf32>)
    sdy.return %v4 : tensor<4x8x4x4xf32>
    } : (tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x32x16xf32>) -> (tensor<16x8x4x4xf32>)
    %v9 = "func.call"(%v5, %arg4) {callee = @f2} : (tensor<16x8x4x4xf32>, tensor<16x8x4x4xf32>) -> (tensor<16x8x4x16xf32>)
    %v10 = "func.call"(%arg4, %v5) {callee = @f2} : (tensor<16x8x4x4xf32>, tensor<16x8x4x4xf32>) -> (tensor<16x8x4x16xf32>)
    %v11 = "stablehlo.negate"(%arg0) {} : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>)
    stablehlo.return %v11 : tensor<4x8x16xf32>
    }, {
    %v12 = "stablehlo.concatenate"(%arg0, %arg0) {dimension = 1 : i64} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> (tensor<4x16x16xf32>)
    %v13 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v14 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v15:2 = "stablehlo.reduce"(%arg4, %arg4, %v13, %v14) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 3>} : (tensor<16x8x4x4xf32>, tensor<16x8x4x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    %v16:2 = "stablehlo.sort"(%v15#1, %v15#1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    %v17 = "stablehlo.negate"(%arg0) {} : (tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>)
    stablehlo.return %v17 : tensor<4x8x16xf32>
    }) : (tensor<i32>) -> tensor<4x8x16xf32>
    return %v1 : tensor<4x8x16xf32>
  }
}
