// divide_integer: integers towards zero; by zero all bits are ones; the least by minus one is itself
// argument {"dtype": "int32", "shape": [5], "data": [7, -7, 7, 5, -2147483648]}
// argument {"dtype": "int32", "shape": [5], "data": [2, 2, -2, 0, -1]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [3, -3, -3, -1, -2147483648]}, "compare": {"exact": true}}
module @jit_divide_integer {
  func.func public @main(%arg0: tensor<5xi32>, %arg1: tensor<5xi32>) -> tensor<5xi32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<5xi32>
    return %0 : tensor<5xi32>
  }
}
