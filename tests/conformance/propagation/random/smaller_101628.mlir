module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<4x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %arg1: tensor<4x4xf32>, %arg2: tensor<8x8x4xf32>, %arg3: tensor<8x8x4xf32>) -> (tensor<8x8x2xf32>, tensor<8x4xf32>, tensor<8x8x4xf32>) {
    %v1:2 = "stablehlo.optimization_barrier"(%arg0, %arg1) {} : (tensor<4x8x4xf32>, tensor<4x4xf32>) -> (tensor<4x8x4xf32>, tensor<4x4xf32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.pad"(%v1#0, %v2) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 4, 0, 0>, interior_padding = array<i64: 0, 0, 0>} : (tensor<4x8x4xf32>, tensor<f32>) -> (tensor<8x8x4xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v6:2 = "stablehlo.reduce"(%v3, %v3, %v4, %v5) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %v7 = sdy.sharding_constraint %v3 <@mesh, [{"x"}, {}, {}]> : tensor<8x8x4xf32>
    %v8 = "stablehlo.sort"(%v7) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v11 = "func.call"(%arg2, %arg3) {callee = @f1} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x2xf32>)
    return %v11, %v6#1, %v8 : tensor<8x8x2xf32>, tensor<8x4xf32>, tensor<8x8x4xf32>
  }
  func.func private @f1(%arg0: tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %arg1: tensor<8x8x4xf32>) -> (tensor<8x8x2xf32>) {
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce_window"(%arg1, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<8x8x4xf32>, tensor<f32>) -> (tensor<8x8x2xf32>)
    return %v10 : tensor<8x8x2xf32>
  }
}
