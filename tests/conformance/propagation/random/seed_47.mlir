module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<16x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x", ?}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %v6 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{?}, {"y", "z", "x", ?}, {?}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{?}, {"y", ?}, {?}]>] manual_axes={"y"} (%v1a0: tensor<16x8x8xf32>, %v1a1: tensor<4xf32>) {
    %v2:2 = "stablehlo.optimization_barrier"(%v1a0, %v1a1) {} : (tensor<16x8x8xf32>, tensor<4xf32>) -> (tensor<16x8x8xf32>, tensor<4xf32>)
    %v3 = "stablehlo.reverse"(%v1a1) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.reduce"(%v1a1, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>)
    sdy.return %v2#0 : tensor<16x8x8xf32>
    } : (tensor<16x16x8xf32>, tensor<4xf32>) -> (tensor<16x16x8xf32>)
    %v7 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9:2 = "stablehlo.reduce"(%arg1, %arg1, %v7, %v8) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %v10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v11 = "stablehlo.pad"(%arg1, %v10) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 4>, interior_padding = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<8xf32>)
    return %v11 : tensor<8xf32>
  }
}
