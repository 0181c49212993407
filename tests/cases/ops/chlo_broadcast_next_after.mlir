// chlo_broadcast_next_after: towards a scalar
// argument {"dtype": "float64", "shape": [2, 3], "data": [[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]}
// argument {"dtype": "float64", "shape": [], "data": 0.0}
// result {"value": {"dtype": "float64", "shape": [2, 3], "data": [[1.4999999999999998, -1.9999999999999998, 0.49999999999999994], [2.9999999999999996, 0.24999999999999997, -0.9999999999999999]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xf64>, %arg1: tensor<f64>) -> tensor<2x3xf64> {
    %0 = chlo.broadcast_next_after %arg0, %arg1 : (tensor<2x3xf64>, tensor<f64>) -> tensor<2x3xf64>
    return %0 : tensor<2x3xf64>
  }
}
