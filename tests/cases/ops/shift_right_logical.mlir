// shift_right_logical: zeros fill in
// argument {"dtype": "int32", "shape": [5], "data": [16, -16, -1, 5, -5]}
// argument {"dtype": "int32", "shape": [5], "data": [2, 28, 31, 32, 40]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [4, 15, 1, 0, 0]}, "compare": {"exact": true}}
module @jit_shift_right_logical {
  func.func public @main(%arg0: tensor<5xi32>, %arg1: tensor<5xi32>) -> tensor<5xi32> {
    %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<5xi32>
    return %0 : tensor<5xi32>
  }
}
