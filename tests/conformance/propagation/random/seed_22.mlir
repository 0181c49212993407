module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<16x8x32xf32>, %arg1: tensor<8x4xf32>) -> (tensor<16x8x64xf32>, tensor<16x8x64xf32>) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<16x8x32xf32>, tensor<8x4xf32>) -> (tensor<16x32x4xf32>)
    %v2 = "stablehlo.concatenate"(%arg0, %arg0) {dimension = 2 : i64} : (tensor<16x8x32xf32>, tensor<16x8x32xf32>) -> (tensor<16x8x64xf32>)
    %v3 = "stablehlo.transpose"(%v2) {permutation = array<i64: 2, 0, 1>} : (tensor<16x8x64xf32>) -> (tensor<64x16x8xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.reduce"(%v2, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x8x64xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v6 = "stablehlo.broadcast_in_dim"(%v5) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x8xf32>) -> (tensor<16x8x64xf32>)
    %v7 = "stablehlo.subtract"(%v2, %v6) {} : (tensor<16x8x64xf32>, tensor<16x8x64xf32>) -> (tensor<16x8x64xf32>)
    %v8 = "stablehlo.exponential"(%v7) {} : (tensor<16x8x64xf32>) -> (tensor<16x8x64xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%v8, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x8x64xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%v10) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x8xf32>) -> (tensor<16x8x64xf32>)
    %v12 = "stablehlo.divide"(%v8, %v11) {} : (tensor<16x8x64xf32>, tensor<16x8x64xf32>) -> (tensor<16x8x64xf32>)
    return %v12, %v2 : tensor<16x8x64xf32>, tensor<16x8x64xf32>
  }
}
