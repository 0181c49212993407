// chlo_broadcast_select: a condition for each column, a scalar on one side
// argument {"dtype": "bool", "shape": [3], "data": [true, false, true]}
// argument {"dtype": "float64", "shape": [2, 3], "data": [[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]}
// argument {"dtype": "float64", "shape": [], "data": 7.0}
// result {"value": {"dtype": "float64", "shape": [2, 3], "data": [[1.5, 7.0, 0.5], [3.0, 7.0, -1.0]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<3xi1>, %arg1: tensor<2x3xf64>, %arg2: tensor<f64>) -> tensor<2x3xf64> {
    %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<3xi1>, tensor<2x3xf64>, tensor<f64>) -> tensor<2x3xf64>
    return %0 : tensor<2x3xf64>
  }
}
