module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<8x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y"}, {?}, {"x"}]>}, %arg1: tensor<8x4x16xf32>, %arg2: tensor<16x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "y", "x", ?}, {?}, {}]>}) -> (tensor<4xf32>) {
    %v1:2 = "stablehlo.sort"(%arg2, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<16x4x8xf32>, tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>, tensor<16x4x8xf32>)
    %v2 = "stablehlo.reverse"(%arg1) {dimensions = array<i64: 2>} : (tensor<8x4x16xf32>) -> (tensor<8x4x16xf32>)
    %v3:2 = "stablehlo.sort"(%arg0, %arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<8x32x8xf32>, tensor<8x32x8xf32>) -> (tensor<8x32x8xf32>, tensor<8x32x8xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.reduce"(%arg2, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0, 2>} : (tensor<16x4x8xf32>, tensor<f32>) -> (tensor<4xf32>)
    return %v5 : tensor<4xf32>
  }
}
