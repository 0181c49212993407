// real_of_real: a real number is its own real part, and has no imaginary one
// argument {"dtype": "float32", "shape": [2], "data": [3.0, -1.0]}
// result {"value": {"dtype": "float32", "shape": [2], "data": [3.0, -1.0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2], "data": [0.0, 0.0]}, "compare": {"exact": true}}
module @jit_real_of_real {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.real %arg0 : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.imag %arg0 : (tensor<2xf32>) -> tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>
  }
}
