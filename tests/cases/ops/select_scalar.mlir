// select_scalar: one pred for all
// argument {"dtype": "bool", "shape": [], "data": false}
// argument {"dtype": "float32", "shape": [3], "data": [1.0, 2.0, 3.0]}
// argument {"dtype": "float32", "shape": [3], "data": [10.0, 20.0, 30.0]}
// result {"value": {"dtype": "float32", "shape": [3], "data": [10.0, 20.0, 30.0]}, "compare": {"exact": true}}
module @jit_select_scalar {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
