// chlo_broadcast_zeta: zeta(x, 1) at even numbers
// argument {"dtype": "float64", "shape": [2], "data": [2.0, 4.0]}
// argument {"dtype": "float64", "shape": [], "data": 1.0}
// result {"value": {"dtype": "float64", "shape": [2], "data": [1.6449340668482264, 1.082323233711138]}, "compare": {"rtol": 1e-13, "atol": 0}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2xf64>, %arg1: tensor<f64>) -> tensor<2xf64> {
    %0 = chlo.broadcast_zeta %arg0, %arg1 : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
    return %0 : tensor<2xf64>
  }
}
