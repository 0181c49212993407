module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x32xf32>) -> (tensor<8x32xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce"(%arg0, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8x32xf32>, tensor<f32>) -> (tensor<32xf32>)
    %v3 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 1>} : (tensor<8x32xf32>) -> (tensor<8x32xf32>)
    return %v3 : tensor<8x32xf32>
  }
}
