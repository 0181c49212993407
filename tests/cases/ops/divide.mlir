// divide: by zero it is infinite or NaN
// argument {"dtype": "float32", "shape": [4], "data": [1.0, -1.0, 0.0, 7.0]}
// argument {"dtype": "float32", "shape": [4], "data": [0.0, 0.0, 0.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [4], "data": ["Infinity", "-Infinity", "NaN", 3.5]}, "compare": {"exact": true}}
module @jit_divide {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
