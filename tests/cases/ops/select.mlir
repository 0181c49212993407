// select: one pred for each element
// argument {"dtype": "bool", "shape": [3], "data": [true, false, true]}
// argument {"dtype": "float32", "shape": [3], "data": [1.0, 2.0, 3.0]}
// argument {"dtype": "float32", "shape": [3], "data": [10.0, 20.0, "NaN"]}
// result {"value": {"dtype": "float32", "shape": [3], "data": [1.0, 20.0, 3.0]}, "compare": {"exact": true}}
module @jit_select {
  func.func public @main(%arg0: tensor<3xi1>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<3xi1>, tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
