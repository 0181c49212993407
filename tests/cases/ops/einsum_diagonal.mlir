// einsum_diagonal: diagonals of both operands, one kept and one contracted
// argument {"dtype": "int32", "shape": [3, 4, 3], "data": [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 0]], [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 0, 1]], [[2, 3, 4], [5, 6, 7], [8, 9, 10], [0, 1, 2]]]}
// argument {"dtype": "int32", "shape": [4, 4, 2], "data": [[[0, 1], [2, 3], [4, 5], [6, 0]], [[1, 2], [3, 4], [5, 6], [0, 1]], [[2, 3], [4, 5], [6, 0], [1, 2]], [[3, 4], [5, 6], [0, 1], [2, 3]]]}
// result {"value": {"dtype": "int32", "shape": [3, 2], "data": [[63, 39], [63, 22], [85, 38]]}, "compare": {"exact": true}}
module @jit_einsum {
  func.func public @main(%arg0: tensor<3x4x3xi32>, %arg1: tensor<4x4x2xi32>) -> tensor<3x2xi32> {
    %0 = stablehlo.einsum %arg0, %arg1, config = "iji,jjk->ik" : (tensor<3x4x3xi32>, tensor<4x4x2xi32>) -> tensor<3x2xi32>
    return %0 : tensor<3x2xi32>
  }
}
