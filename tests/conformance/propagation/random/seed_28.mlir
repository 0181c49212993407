module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x32x8xf32>) -> (tensor<16x32x8xf32>, tensor<16x32x4xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce_window"(%arg0, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<16x32x8xf32>, tensor<f32>) -> (tensor<16x32x4xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3:2 = stablehlo.while(%v3i0 = %arg0, %v3c = %v5) : tensor<16x32x8xf32>, tensor<i32> cond {
    %v3l = stablehlo.constant dense<4> : tensor<i32>
    %v3q = stablehlo.compare LT, %v3c, %v3l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v3q : tensor<i1>
    } do {
    %v3o = stablehlo.constant dense<1> : tensor<i32>
    %v3j = stablehlo.add %v3c, %v3o : tensor<i32>
    %v4 = "stablehlo.tanh"(%v3i0) {} : (tensor<16x32x8xf32>) -> (tensor<16x32x8xf32>)
    stablehlo.return %v4, %v3j : tensor<16x32x8xf32>, tensor<i32>
    }
    %v7:2 = "func.call"(%v3#0, %arg0) {callee = @f1, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}, {"y", "x", ?}]>, <@mesh, [{}, {"x", ?}, {"y"}]>]>} : (tensor<16x32x8xf32>, tensor<16x32x8xf32>) -> (tensor<16x32x8xf32>, tensor<16x32x8xf32>)
    return %v7#1, %v2 : tensor<16x32x8xf32>, tensor<16x32x4xf32>
  }
  func.func private @f1(%arg0: tensor<16x32x8xf32>, %arg1: tensor<16x32x8xf32>) -> (tensor<16x32x8xf32>, tensor<16x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {?}]>}) {
    %v6:2 = "stablehlo.optimization_barrier"(%arg0, %arg1) {} : (tensor<16x32x8xf32>, tensor<16x32x8xf32>) -> (tensor<16x32x8xf32>, tensor<16x32x8xf32>)
    return %v6#1, %v6#1 : tensor<16x32x8xf32>, tensor<16x32x8xf32>
  }
}
