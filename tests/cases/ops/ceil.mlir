// ceil: towards plus infinity
// argument {"dtype": "float32", "shape": [6], "data": [-1.5, -0.5, 0.2, 2.0, "Infinity", 7.0001]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.0, -0.0, 1.0, 2.0, "Infinity", 8.0]}, "compare": {"exact": true}}
module @jit_ceil {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.ceil %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
