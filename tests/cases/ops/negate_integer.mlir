// negate_integer: the least integer has no negative
// argument {"dtype": "int32", "shape": [4], "data": [1, -2, 0, -2147483648]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [-1, 2, 0, -2147483648]}, "compare": {"exact": true}}
module @jit_negate_integer {
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.negate %arg0 : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
