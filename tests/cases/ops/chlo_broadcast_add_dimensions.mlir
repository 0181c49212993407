// chlo_broadcast_add_dimensions: a vector along the first dimension
// argument {"dtype": "int32", "shape": [2, 3], "data": [[5, -3, 7], [2, 9, -8]]}
// argument {"dtype": "int32", "shape": [2], "data": [1, 2]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[6, -2, 8], [4, 11, -6]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xi32>, %arg1: tensor<2xi32>) -> tensor<2x3xi32> {
    %0 = chlo.broadcast_add %arg0, %arg1 {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
}
