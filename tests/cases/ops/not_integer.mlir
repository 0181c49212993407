// not_integer: every bit changed
// argument {"dtype": "int32", "shape": [4], "data": [0, 1, -1, 12345]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [-1, -2, 0, -12346]}, "compare": {"exact": true}}
module @jit_not_integer {
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.not %arg0 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
