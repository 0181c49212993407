// unary_einsum: sums and turns
// argument {"dtype": "int32", "shape": [2, 3, 4], "data": [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]}
// result {"value": {"dtype": "int32", "shape": [4, 2], "data": [[12, 48], [15, 51], [18, 54], [21, 57]]}, "compare": {"exact": true}}
module @jit_einsum {
  func.func public @main(%arg0: tensor<2x3x4xi32>) -> tensor<4x2xi32> {
    %0 = stablehlo.unary_einsum %arg0, config = "abc->ca" : (tensor<2x3x4xi32>) -> tensor<4x2xi32>
    return %0 : tensor<4x2xi32>
  }
}
