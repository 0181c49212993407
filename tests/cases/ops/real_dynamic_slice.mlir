// real_dynamic_slice: bounds that are arguments
// argument {"dtype": "int32", "shape": [4, 5], "data": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]}
// argument {"dtype": "int64", "shape": [2], "data": [1, 0]}
// argument {"dtype": "int64", "shape": [2], "data": [3, 5]}
// argument {"dtype": "int64", "shape": [2], "data": [1, 2]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[5, 7, 9], [10, 12, 14]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<4x5xi32>, %arg1: tensor<2xi64>, %arg2: tensor<2xi64>, %arg3: tensor<2xi64>) -> tensor<2x3xi32> {
    %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x5xi32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
}
