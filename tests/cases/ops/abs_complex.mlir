// abs_complex: the magnitude is real
// argument {"dtype": "complex64", "shape": [3], "data": [[3.0, 4.0], [-1.0, 0.0], [0.0, -2.0]]}
// result {"value": {"dtype": "float32", "shape": [3], "data": [5.0, 1.0, 2.0]}, "compare": {"ulp": 2}}
module @jit_abs_complex {
  func.func public @main(%arg0: tensor<3xcomplex<f32>>) -> tensor<3xf32> {
    %0 = stablehlo.abs %arg0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
