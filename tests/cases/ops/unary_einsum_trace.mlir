// unary_einsum_trace: a letter three times: the sum of the diagonal
// argument {"dtype": "int32", "shape": [3, 3, 3], "data": [[[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, 10, 11], [12, 13, 14], [15, 16, 17]], [[18, 19, 20], [21, 22, 23], [24, 25, 26]]]}
// result {"value": {"dtype": "int32", "shape": [], "data": 39}, "compare": {"exact": true}}
module @jit_einsum {
  func.func public @main(%arg0: tensor<3x3x3xi32>) -> tensor<i32> {
    %0 = stablehlo.unary_einsum %arg0, config = "iii->" : (tensor<3x3x3xi32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
