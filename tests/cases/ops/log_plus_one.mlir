// log_plus_one: exact near zero
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 1e-06, -1e-06, -1.0, -2.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 9.999995e-07, -1.0000005e-06, "-Infinity", "NaN", "Infinity"]}, "compare": {"ulp": 4}}
module @jit_log_plus_one {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.log_plus_one %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
