// is_finite: neither infinite nor NaN
// argument {"dtype": "float32", "shape": [6], "data": [0.0, "Infinity", "-Infinity", "NaN", 3e+38, -1.0]}
// result {"value": {"dtype": "bool", "shape": [6], "data": [true, false, false, false, true, true]}, "compare": {"exact": true}}
module @jit_is_finite {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xi1> {
    %0 = stablehlo.is_finite %arg0 : (tensor<6xf32>) -> tensor<6xi1>
    return %0 : tensor<6xi1>
  }
}
