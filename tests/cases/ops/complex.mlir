// complex: from its parts, and back
// argument {"dtype": "float32", "shape": [3], "data": [3.0, -1.0, 0.0]}
// argument {"dtype": "float32", "shape": [3], "data": [4.0, 0.0, -2.0]}
// result {"value": {"dtype": "complex64", "shape": [3], "data": [[3.0, 4.0], [-1.0, 0.0], [0.0, -2.0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [3], "data": [3.0, -1.0, 0.0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [3], "data": [4.0, 0.0, -2.0]}, "compare": {"exact": true}}
module @jit_complex {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.complex %arg0, %arg1 : tensor<3xcomplex<f32>>
    %1 = stablehlo.real %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %2 = stablehlo.imag %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    return %0, %1, %2 : tensor<3xcomplex<f32>>, tensor<3xf32>, tensor<3xf32>
  }
}
