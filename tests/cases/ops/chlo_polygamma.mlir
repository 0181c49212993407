// chlo_polygamma: the order must be a natural number
// argument {"dtype": "float64", "shape": [6], "data": [0.0, 1.0, 2.0, 3.0, 1.5, -1.0]}
// argument {"dtype": "float64", "shape": [6], "data": [2.5, 0.5, 3.0, 1.25, 1.0, 1.0]}
// result {"value": {"dtype": "float64", "shape": [6], "data": [0.7031566406452432, 4.93480220054468, -0.15411380631918856, 2.782144009188397, "NaN", "NaN"]}, "compare": {"rtol": 1e-12, "atol": 0}}
module @jit_chlo_polygamma {
  func.func public @main(%arg0: tensor<6xf64>, %arg1: tensor<6xf64>) -> tensor<6xf64> {
    %0 = chlo.polygamma %arg0, %arg1 : tensor<6xf64>, tensor<6xf64> -> tensor<6xf64>
    return %0 : tensor<6xf64>
  }
}
