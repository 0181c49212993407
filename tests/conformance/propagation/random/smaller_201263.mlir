module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<4xf32>, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg3: tensor<2x4xf32>) -> (tensor<4x2xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce"(%arg1, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>)
    %v3 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.dynamic_update_slice"(%arg2, %arg3, %v3, %v4) {} : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<4x4xf32>)
    %v6 = sdy.propagation_barrier %v5 allowed_direction=NONE : tensor<4x4xf32>
    %v9 = sdy.manual_computation(%arg2) in_shardings=[<@mesh, [{}, {"x"}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y"} (%v7a0: tensor<4x2xf32>) {
    %v8 = "stablehlo.tanh"(%v7a0) {} : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
    sdy.return %v8 : tensor<4x2xf32>
    } : (tensor<4x4xf32>) -> (tensor<4x2xf32>)
    return %v9 : tensor<4x2xf32>
  }
}
