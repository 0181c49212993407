// abs: keeps infinities, drops the sign of zero
// argument {"dtype": "float32", "shape": [6], "data": [-2.5, 0.0, -0.0, 3.0, "-Infinity", "NaN"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [2.5, 0.0, 0.0, 3.0, "Infinity", "NaN"]}, "compare": {"exact": true}}
module @jit_abs {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.abs %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
