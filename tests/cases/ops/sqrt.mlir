// sqrt: negative numbers have none
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 4.0, 2.0, -1.0, "Infinity", 1e-30]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 2.0, 1.4142135, "NaN", "Infinity", 1e-15]}, "compare": {"ulp": 1}}
module @jit_sqrt {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.sqrt %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
