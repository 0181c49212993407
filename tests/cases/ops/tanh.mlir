// tanh: saturates at one
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 0.5, -1.0, 20.0, "-Infinity", 0.0001]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 0.46211717, -0.7615942, 1.0, -1.0, 0.0001]}, "compare": {"ulp": 4}}
module @jit_tanh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
