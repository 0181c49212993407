// negate: changes the sign of zero too
// argument {"dtype": "float32", "shape": [6], "data": [1.0, -2.5, 0.0, "Infinity", "-Infinity", 3.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.0, 2.5, -0.0, "-Infinity", "Infinity", -3.0]}, "compare": {"exact": true}}
module @jit_negate {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.negate %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
