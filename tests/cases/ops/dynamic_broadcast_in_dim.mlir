// dynamic_broadcast_in_dim: one element is repeated, a new dimension comes in front
// argument {"dtype": "int32", "shape": [2, 1], "data": [[1], [2]]}
// result {"value": {"dtype": "int32", "shape": [2, 2, 3], "data": [[[1, 1, 1], [2, 2, 2]], [[1, 1, 1], [2, 2, 2]]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<2x1xi32>) -> tensor<2x2x3xi32> {
    %c = stablehlo.constant dense<[2, 2, 3]> : tensor<3xi64>
    %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %c, dims = [1, 2] : (tensor<2x1xi32>, tensor<3xi64>) -> tensor<2x2x3xi32>
    return %0 : tensor<2x2x3xi32>
  }
}
