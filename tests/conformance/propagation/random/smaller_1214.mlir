module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<4xf32>) -> (tensor<16xf32>) {
    %v1:2 = "stablehlo.optimization_barrier"(%arg0, %arg0) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.reduce_window"(%arg1, %v2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<4x4xf32>, tensor<f32>) -> (tensor<4x2xf32>)
    %v4 = "stablehlo.tanh"(%v3) {} : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
    %v5 = "stablehlo.tanh"(%v4) {} : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
    %v6 = "stablehlo.transpose"(%v5) {permutation = array<i64: 0, 1>} : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
    %v14 = "func.call"(%arg2) {callee = @f1} : (tensor<4xf32>) -> (tensor<16xf32>)
    return %v14 : tensor<16xf32>
  }
  func.func private @f1(%arg0: tensor<4xf32>) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"z"}>}) {
    %v13 = sdy.manual_computation(%arg0, %arg0) in_shardings=[<@mesh, [{}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"x", "z"}]>] manual_axes={"x", "z"} (%v7a0: tensor<4xf32>, %v7a1: tensor<4xf32>) {
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v8:2 = stablehlo.while(%v8i0 = %v7a1, %v8c = %v12) : tensor<4xf32>, tensor<i32> cond {
    %v8l = stablehlo.constant dense<4> : tensor<i32>
    %v8q = stablehlo.compare LT, %v8c, %v8l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v8q : tensor<i1>
    } do {
    %v8o = stablehlo.constant dense<1> : tensor<i32>
    %v8j = stablehlo.add %v8c, %v8o : tensor<i32>
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%v8i0, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>)
    %v11 = "stablehlo.tanh"(%v8i0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    stablehlo.return %v11, %v8j : tensor<4xf32>, tensor<i32>
    }
    sdy.return %v8#0 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<16xf32>)
    return %v13 : tensor<16xf32>
  }
}
