// chlo_top_k: equal elements are in the order of their indices
// argument {"dtype": "int32", "shape": [2, 4], "data": [[3, 1, 3, 2], [-1, 5, 5, 0]]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[3, 3, 2], [5, 5, 0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[0, 2, 3], [1, 2, 3]]}, "compare": {"exact": true}}
module @jit_top_k {
  func.func public @main(%arg0: tensor<2x4xi32>) -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %values, %indices = chlo.top_k(%arg0, k = 3) : tensor<2x4xi32> -> (tensor<2x3xi32>, tensor<2x3xi32>)
    return %values, %indices : tensor<2x3xi32>, tensor<2x3xi32>
  }
}
