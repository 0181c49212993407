// chlo_asinh: odd
// argument {"dtype": "float32", "shape": [6], "data": [-100.0, -0.5, 0.0, 0.5, 1.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-5.298342, -0.4812118, 0.0, 0.4812118, 0.8813736, "Infinity"]}, "compare": {"ulp": 4}}
module @jit_chlo_asinh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.asinh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
