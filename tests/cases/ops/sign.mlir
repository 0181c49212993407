// sign: zero keeps its sign, NaN stays
// argument {"dtype": "float32", "shape": [6], "data": [-3.0, 0.0, -0.0, 5.0, "Infinity", "NaN"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.0, 0.0, -0.0, 1.0, 1.0, "NaN"]}, "compare": {"exact": true}}
module @jit_sign {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.sign %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
