// chlo_broadcast_and: both sides grow
// argument {"dtype": "int32", "shape": [2, 1], "data": [[12], [10]]}
// argument {"dtype": "int32", "shape": [3], "data": [2, 3, 1]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[0, 0, 0], [2, 2, 0]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x1xi32>, %arg1: tensor<3xi32>) -> tensor<2x3xi32> {
    %0 = chlo.broadcast_and %arg0, %arg1 : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
}
