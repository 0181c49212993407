// subtract: of equal infinities it is NaN
// argument {"dtype": "float32", "shape": [4], "data": [1.0, 0.1, "Infinity", -1.0]}
// argument {"dtype": "float32", "shape": [4], "data": [2.0, 0.2, "Infinity", 1.0]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [-1.0, -0.1, "NaN", -2.0]}, "compare": {"exact": true}}
module @jit_subtract {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
