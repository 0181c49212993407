// xor: bitwise
// argument {"dtype": "int32", "shape": [3], "data": [12, -1, 0]}
// argument {"dtype": "int32", "shape": [3], "data": [10, 7, 5]}
// result {"value": {"dtype": "int32", "shape": [3], "data": [6, -8, 5]}, "compare": {"exact": true}}
module @jit_xor {
  func.func public @main(%arg0: tensor<3xi32>, %arg1: tensor<3xi32>) -> tensor<3xi32> {
    %0 = stablehlo.xor %arg0, %arg1 : tensor<3xi32>
    return %0 : tensor<3xi32>
  }
}
