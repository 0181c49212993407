// broadcast: two new dimensions in front
// argument {"dtype": "int32", "shape": [2], "data": [1, 2]}
// result {"value": {"dtype": "int32", "shape": [3, 1, 2], "data": [[[1, 2]], [[1, 2]], [[1, 2]]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2xi32>) -> tensor<3x1x2xi32> {
    %0 = stablehlo.broadcast %arg0, sizes = [3, 1] : (tensor<2xi32>) -> tensor<3x1x2xi32>
    return %0 : tensor<3x1x2xi32>
  }
}
