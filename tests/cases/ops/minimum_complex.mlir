// minimum_complex: by the real parts, then the imaginary ones
// argument {"dtype": "complex64", "shape": [3], "data": [[1.0, 9.0], [2.0, -1.0], [0.0, 0.0]]}
// argument {"dtype": "complex64", "shape": [3], "data": [[1.0, 3.0], [3.0, -1.0], [0.0, -1.0]]}
// result {"value": {"dtype": "complex64", "shape": [3], "data": [[1.0, 3.0], [2.0, -1.0], [0.0, -1.0]]}, "compare": {"exact": true}}
module @jit_minimum_complex {
  func.func public @main(%arg0: tensor<3xcomplex<f32>>, %arg1: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
    %0 = stablehlo.minimum %arg0, %arg1 : tensor<3xcomplex<f32>>
    return %0 : tensor<3xcomplex<f32>>
  }
}
