// log: negative numbers have none
// argument {"dtype": "float32", "shape": [6], "data": [1.0, 0.0, 2.7182817, -1.0, "Infinity", 1e-30]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, "-Infinity", 0.99999994, "NaN", "Infinity", -69.07755]}, "compare": {"ulp": 4}}
module @jit_log {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.log %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
