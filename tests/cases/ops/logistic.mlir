// logistic: 1 / (1 + exp(-x))
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 1.0, -1.0, 20.0, -80.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.5, 0.7310586, 0.26894143, 1.0, 1.8048513e-35, 1.0]}, "compare": {"ulp": 4}}
module @jit_logistic {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.logistic %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
