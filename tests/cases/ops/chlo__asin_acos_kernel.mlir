// chlo__asin_acos_kernel: its parts give asin back
// argument {"dtype": "complex128", "shape": [3], "data": [[1.0, 2.0], [-0.5, 0.25], [3.0, -1.0]]}
// result {"value": {"dtype": "complex128", "shape": [3], "data": [[2.19736822693562, 1.528570919480998], [0.9117543273261622, 0.28139605624529274], [1.0534572742387058, 1.8241987021938828]]}, "compare": {"rtol": 1e-13, "atol": 0}}
module @jit_kernel {
  func.func public @main(%arg0: tensor<3xcomplex<f64>>) -> tensor<3xcomplex<f64>> {
    %0 = chlo._asin_acos_kernel %arg0 : tensor<3xcomplex<f64>> -> tensor<3xcomplex<f64>>
    return %0 : tensor<3xcomplex<f64>>
  }
}
