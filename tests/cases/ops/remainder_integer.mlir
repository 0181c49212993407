// remainder_integer: by zero it is the dividend
// argument {"dtype": "int32", "shape": [5], "data": [7, -7, 7, 5, -2147483648]}
// argument {"dtype": "int32", "shape": [5], "data": [3, 3, -3, 0, -1]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [1, -1, 1, 5, 0]}, "compare": {"exact": true}}
module @jit_remainder_integer {
  func.func public @main(%arg0: tensor<5xi32>, %arg1: tensor<5xi32>) -> tensor<5xi32> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<5xi32>
    return %0 : tensor<5xi32>
  }
}
