// shift_left: by the width or more it is zero
// argument {"dtype": "int32", "shape": [5], "data": [1, 1, -1, 3, 3]}
// argument {"dtype": "int32", "shape": [5], "data": [4, 31, 8, 32, 40]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [16, -2147483648, -256, 0, 0]}, "compare": {"exact": true}}
module @jit_shift_left {
  func.func public @main(%arg0: tensor<5xi32>, %arg1: tensor<5xi32>) -> tensor<5xi32> {
    %0 = stablehlo.shift_left %arg0, %arg1 : tensor<5xi32>
    return %0 : tensor<5xi32>
  }
}
