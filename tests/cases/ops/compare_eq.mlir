// compare_eq: a NaN is unequal to everything
// argument {"dtype": "float32", "shape": [4], "data": [1.0, 2.0, "NaN", 3.0]}
// argument {"dtype": "float32", "shape": [4], "data": [2.0, 2.0, 1.0, 1.0]}
// result {"value": {"dtype": "bool", "shape": [4], "data": [false, true, false, false]}, "compare": {"exact": true}}
module @jit_compare_eq {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xi1> {
    %0 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
}
