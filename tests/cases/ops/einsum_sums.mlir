// einsum_sums: letters of one side alone that the result does not have are summed
// argument {"dtype": "int32", "shape": [2, 3, 4], "data": [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]}
// argument {"dtype": "int32", "shape": [2, 4, 5], "data": [[[0, 1, 2, 3, 4], [5, 6, 0, 1, 2], [3, 4, 5, 6, 0], [1, 2, 3, 4, 5]], [[6, 0, 1, 2, 3], [4, 5, 6, 0, 1], [2, 3, 4, 5, 6], [0, 1, 2, 3, 4]]]}
// result {"value": {"dtype": "int32", "shape": [2, 5], "data": [[624, 900, 714, 990, 762], [768, 624, 900, 714, 990]]}, "compare": {"exact": true}}
module @jit_einsum {
  func.func public @main(%arg0: tensor<2x3x4xi32>, %arg1: tensor<2x4x5xi32>) -> tensor<2x5xi32> {
    %0 = stablehlo.einsum %arg0, %arg1, config = "bij,cjk->ck" : (tensor<2x3x4xi32>, tensor<2x4x5xi32>) -> tensor<2x5xi32>
    return %0 : tensor<2x5xi32>
  }
}
