// chlo_broadcast_complex: parts of different shapes
// argument {"dtype": "float64", "shape": [2, 3], "data": [[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]}
// argument {"dtype": "float64", "shape": [], "data": 4.0}
// result {"value": {"dtype": "complex128", "shape": [2, 3], "data": [[[1.5, 4.0], [-2.0, 4.0], [0.5, 4.0]], [[3.0, 4.0], [0.25, 4.0], [-1.0, 4.0]]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xf64>, %arg1: tensor<f64>) -> tensor<2x3xcomplex<f64>> {
    %0 = chlo.broadcast_complex %arg0, %arg1 : (tensor<2x3xf64>, tensor<f64>) -> tensor<2x3xcomplex<f64>>
    return %0 : tensor<2x3xcomplex<f64>>
  }
}
