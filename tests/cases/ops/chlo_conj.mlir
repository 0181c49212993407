// chlo_conj: the imaginary part changes its sign
// argument {"dtype": "complex64", "shape": [3], "data": [[3.0, 4.0], [-1.0, 0.0], [0.0, -2.0]]}
// result {"value": {"dtype": "complex64", "shape": [3], "data": [[3.0, -4.0], [-1.0, -0.0], [0.0, 2.0]]}, "compare": {"exact": true}}
module @jit_chlo_conj {
  func.func public @main(%arg0: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
    %0 = chlo.conj %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    return %0 : tensor<3xcomplex<f32>>
  }
}
