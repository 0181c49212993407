// remainder: has the sign of the dividend
// argument {"dtype": "float32", "shape": [5], "data": [7.0, -7.0, 7.5, 1.0, "Infinity"]}
// argument {"dtype": "float32", "shape": [5], "data": [3.0, 3.0, -2.0, 0.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [5], "data": [1.0, -1.0, 1.5, "NaN", "NaN"]}, "compare": {"exact": true}}
module @jit_remainder {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> tensor<5xf32> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
