// torch_index_select: columns that indices of two dimensions choose
// argument {"dtype": "int32", "shape": [4, 5], "data": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]}
// argument {"dtype": "int32", "shape": [2, 2], "data": [[4, 0], [1, 1]]}
// result {"value": {"dtype": "int32", "shape": [4, 2, 2], "data": [[[4, 0], [1, 1]], [[9, 5], [6, 6]], [[14, 10], [11, 11]], [[19, 15], [16, 16]]]}, "compare": {"exact": true}}
module @jit_index_select {
  func.func public @main(%arg0: tensor<4x5xi32>, %arg1: tensor<2x2xi32>) -> tensor<4x2x2xi32> {
    %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<4x5xi32>, tensor<2x2xi32>) -> tensor<4x2x2xi32>
    return %0 : tensor<4x2x2xi32>
  }
}
