// chlo_broadcast_polygamma: order one at one and a half
// argument {"dtype": "float64", "shape": [], "data": 1.0}
// argument {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]}
// result {"value": {"dtype": "float64", "shape": [2], "data": [1.6449340668482264, 4.934802200544679]}, "compare": {"rtol": 1e-13, "atol": 0}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<f64>, %arg1: tensor<2xf64>) -> tensor<2xf64> {
    %0 = chlo.broadcast_polygamma %arg0, %arg1 : (tensor<f64>, tensor<2xf64>) -> tensor<2xf64>
    return %0 : tensor<2xf64>
  }
}
