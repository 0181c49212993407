// chlo_is_neg_inf: minus infinity only
// argument {"dtype": "float32", "shape": [4], "data": ["Infinity", "-Infinity", "NaN", 1.0]}
// result {"value": {"dtype": "bool", "shape": [4], "data": [false, true, false, false]}, "compare": {"exact": true}}
module @jit_chlo_is_neg_inf {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = chlo.is_neg_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
}
