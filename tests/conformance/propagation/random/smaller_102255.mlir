module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg2: tensor<1x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {"y"}]>}) -> (tensor<4x4x4xf32>, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
    %v1 = "stablehlo.reshape"(%arg0) {} : (tensor<4x4xf32>) -> (tensor<1x4x4xf32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4:2 = "stablehlo.reduce"(%v1, %arg2, %v2, %v3) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %v5 = "stablehlo.broadcast_in_dim"(%v4#1) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<4x4xf32>) -> (tensor<4x4x4xf32>)
    return %v5, %v4#0 : tensor<4x4x4xf32>, tensor<4x4xf32>
  }
}
