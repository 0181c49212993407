// chlo_acosh: not below one
// argument {"dtype": "float32", "shape": [6], "data": [1.0, 1.5, 2.0, 100.0, 0.5, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 0.9624236, 1.316958, 5.298292, "NaN", "Infinity"]}, "compare": {"ulp": 4}}
module @jit_chlo_acosh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.acosh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
