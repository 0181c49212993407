module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8x8xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3:2 = "stablehlo.reduce"(%arg2, %arg3, %v1, %v2) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %v6:2 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{"y":(2)2}, {}]>] manual_axes={"x"} (%v4a0: tensor<4x8xf32>) {
    %v5 = "stablehlo.tanh"(%v4a0) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    sdy.return %v5, %v5 : tensor<4x8xf32>, tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>)
    %v7 = sdy.sharding_constraint %v6#0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
    %v8 = "stablehlo.reshape"(%v7) {} : (tensor<8x8xf32>) -> (tensor<4x2x8xf32>)
    %v11 = sdy.manual_computation(%arg2, %v7) in_shardings=[<@mesh, [{}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"y"} (%v9a0: tensor<8xf32>, %v9a1: tensor<8x8xf32>) {
    %v10 = "stablehlo.tanh"(%v9a1) {} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    sdy.return %v10 : tensor<8x8xf32>
    } : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>)
    return %v11 : tensor<8x8xf32>
  }
}
