module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}]>}, %arg1: tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}p1, {?}]>}, %arg2: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>}) -> (tensor<32x16xf32>) {
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:2 = stablehlo.while(%v1i0 = %arg0, %v1c = %v5) : tensor<16x16xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.reduce_window"(%v1i0, %v2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<16x16xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v4 = "stablehlo.tanh"(%v1i0) {} : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
    stablehlo.return %v4, %v1j : tensor<16x16xf32>, tensor<i32>
    }
    %v6 = "stablehlo.slice"(%arg2) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 32, 32>, strides = array<i64: 1, 1>} : (tensor<32x32xf32>) -> (tensor<32x16xf32>)
    return %v6 : tensor<32x16xf32>
  }
}
