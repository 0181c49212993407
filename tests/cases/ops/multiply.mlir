// multiply: infinity times zero is NaN
// argument {"dtype": "float32", "shape": [4], "data": [2.0, "Infinity", -3.0, 0.5]}
// argument {"dtype": "float32", "shape": [4], "data": [4.0, 0.0, -3.0, 0.5]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [8.0, "NaN", 9.0, 0.25]}, "compare": {"exact": true}}
module @jit_multiply {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
