// chlo_broadcast_or: both sides grow
// argument {"dtype": "int32", "shape": [2, 1], "data": [[12], [10]]}
// argument {"dtype": "int32", "shape": [3], "data": [2, 3, 1]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[14, 15, 13], [10, 11, 11]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x1xi32>, %arg1: tensor<3xi32>) -> tensor<2x3xi32> {
    %0 = chlo.broadcast_or %arg0, %arg1 : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
}
