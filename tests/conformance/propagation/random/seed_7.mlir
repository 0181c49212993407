module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<32x4xf32>) -> (tensor<128x2xf32>, tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) {
    %v5:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{"x", "z"}, {"y", ?}]>, <@mesh, [{"x", "y", "z", ?}, {}]>] manual_axes={"x", "y", "z"} (%v1a0: tensor<32x2xf32>) {
    %v2 = "stablehlo.transpose"(%v1a0) {permutation = array<i64: 0, 1>} : (tensor<32x2xf32>) -> (tensor<32x2xf32>)
    %v3 = "stablehlo.transpose"(%v1a0) {permutation = array<i64: 0, 1>} : (tensor<32x2xf32>) -> (tensor<32x2xf32>)
    %v4 = "stablehlo.reverse"(%v3) {dimensions = array<i64: 0>} : (tensor<32x2xf32>) -> (tensor<32x2xf32>)
    sdy.return %v3, %v4 : tensor<32x2xf32>, tensor<32x2xf32>
    } : (tensor<32x4xf32>) -> (tensor<128x4xf32>, tensor<256x2xf32>)
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.pad"(%v5#0, %v6) {edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 0, 4>, interior_padding = array<i64: 0, 0>} : (tensor<128x4xf32>, tensor<f32>) -> (tensor<128x8xf32>)
    %v8 = sdy.sharding_constraint %arg0 <@mesh, [{}, {?}]> : tensor<32x4xf32>
    %v9 = "stablehlo.sort"(%v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<32x4xf32>) -> (tensor<32x4xf32>)
    %v10 = sdy.propagation_barrier %v7 allowed_direction=BACKWARD : tensor<128x8xf32>
    %v11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v13 = "stablehlo.dynamic_slice"(%v5#1, %v11, %v12) {slice_sizes = array<i64: 128, 2>} : (tensor<256x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<128x2xf32>)
    return %v13, %v9 : tensor<128x2xf32>, tensor<32x4xf32>
  }
}
