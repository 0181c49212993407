// exponential: overflow is infinity, minus infinity is zero
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 1.0, -1.0, 88.0, 100.0, "-Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.0, 2.7182817, 0.36787945, 1.6516363e+38, "Infinity", 0.0]}, "compare": {"ulp": 4}}
module @jit_exponential {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
