// minimum: NaN wins
// argument {"dtype": "float32", "shape": [4], "data": [1.0, "NaN", "-Infinity", 2.0]}
// argument {"dtype": "float32", "shape": [4], "data": [2.0, 1.0, -1.0, "NaN"]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [1.0, "NaN", "-Infinity", "NaN"]}, "compare": {"exact": true}}
module @jit_minimum {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.minimum %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
