// chlo_broadcast_remainder: rows with a vector
// argument {"dtype": "int32", "shape": [2, 3], "data": [[5, -3, 7], [2, 9, -8]]}
// argument {"dtype": "int32", "shape": [3], "data": [2, 3, 1]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[1, 0, 0], [0, 0, 0]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xi32>, %arg1: tensor<3xi32>) -> tensor<2x3xi32> {
    %0 = chlo.broadcast_remainder %arg0, %arg1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
}
