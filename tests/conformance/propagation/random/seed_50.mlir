module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}, %arg1: tensor<8x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}, {}]>}, %arg2: tensor<32x8xf32>, %arg3: tensor<32x8xf32>) -> (tensor<8x4x1xf32>) {
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:2 = stablehlo.while(%v1i0 = %arg0, %v1c = %v5) : tensor<32x8xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v2:2 = "stablehlo.sort"(%v1i0, %v1i0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>)
    %v3:2 = "stablehlo.sort"(%v2#1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>)
    %v4:2 = "stablehlo.sort"(%v1i0, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>)
    stablehlo.return %v3#1, %v1j : tensor<32x8xf32>, tensor<i32>
    }
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.reduce_window"(%arg3, %v6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<32x8xf32>, tensor<f32>) -> (tensor<32x4xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.pad"(%arg1, %v8) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 0, 32>, interior_padding = array<i64: 0, 0, 0>} : (tensor<8x8x32xf32>, tensor<f32>) -> (tensor<8x8x64xf32>)
    %v13 = sdy.manual_computation(%arg3, %arg0) in_shardings=[<@mesh, [{"x", ?}, {?}]>, <@mesh, [{}, {"x", ?}]>] out_shardings=[<@mesh, [{}, {?}, {}]>] manual_axes={"x"} (%v10a0: tensor<4x8xf32>, %v10a1: tensor<32x1xf32>) {
    %v11 = "stablehlo.reshape"(%v10a1) {} : (tensor<32x1xf32>) -> (tensor<8x4x1xf32>)
    %v12 = "stablehlo.reverse"(%v11) {dimensions = array<i64: 2>} : (tensor<8x4x1xf32>) -> (tensor<8x4x1xf32>)
    sdy.return %v12 : tensor<8x4x1xf32>
    } : (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<8x4x1xf32>)
    return %v13 : tensor<8x4x1xf32>
  }
}
