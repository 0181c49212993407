// compare_totalorder: minus zero before zero, NaN behind infinity
// argument {"dtype": "float32", "shape": [5], "data": [-0.0, 0.0, "NaN", "Infinity", "-Infinity"]}
// argument {"dtype": "float32", "shape": [5], "data": [0.0, -0.0, "Infinity", "NaN", "NaN"]}
// result {"value": {"dtype": "bool", "shape": [5], "data": [true, false, false, true, true]}, "compare": {"exact": true}}
module @jit_compare_totalorder {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> tensor<5xi1> {
    %0 = stablehlo.compare LT, %arg0, %arg1, TOTALORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    return %0 : tensor<5xi1>
  }
}
