// torch_index_select_batch: each batch has indices of its own
// argument {"dtype": "int32", "shape": [2, 3, 4], "data": [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]}
// argument {"dtype": "int32", "shape": [2, 2], "data": [[1, 0], [2, 2]]}
// result {"value": {"dtype": "int32", "shape": [2, 2, 4], "data": [[[4, 5, 6, 7], [0, 1, 2, 3]], [[20, 21, 22, 23], [20, 21, 22, 23]]]}, "compare": {"exact": true}}
module @jit_index_select {
  func.func public @main(%arg0: tensor<2x3x4xi32>, %arg1: tensor<2x2xi32>) -> tensor<2x2x4xi32> {
    %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 1 : i64, dim = 1 : i64}> : (tensor<2x3x4xi32>, tensor<2x2xi32>) -> tensor<2x2x4xi32>
    return %0 : tensor<2x2x4xi32>
  }
}
