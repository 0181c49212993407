// einsum: a batch, and a result in another order
// argument {"dtype": "int32", "shape": [2, 3, 4], "data": [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]}
// argument {"dtype": "int32", "shape": [2, 4, 5], "data": [[[0, 1, 2, 3, 4], [5, 6, 0, 1, 2], [3, 4, 5, 6, 0], [1, 2, 3, 4, 5]], [[6, 0, 1, 2, 3], [4, 5, 6, 0, 1], [2, 3, 4, 5, 6], [0, 1, 2, 3, 4]]]}
// result {"value": {"dtype": "int32", "shape": [2, 5, 3], "data": [[[14, 50, 86], [20, 72, 124], [19, 59, 99], [25, 81, 137], [17, 61, 105]], [[152, 200, 248], [122, 158, 194], [176, 228, 280], [139, 179, 219], [193, 249, 305]]]}, "compare": {"exact": true}}
module @jit_einsum {
  func.func public @main(%arg0: tensor<2x3x4xi32>, %arg1: tensor<2x4x5xi32>) -> tensor<2x5x3xi32> {
    %0 = stablehlo.einsum %arg0, %arg1, config = "bij,bjk->bki" : (tensor<2x3x4xi32>, tensor<2x4x5xi32>) -> tensor<2x5x3xi32>
    return %0 : tensor<2x5x3xi32>
  }
}
