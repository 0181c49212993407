// chlo_erfc: exact for large arguments
// argument {"dtype": "float32", "shape": [6], "data": [-3.0, -0.5, 0.0, 0.5, 1.0, 5.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.999978, 1.5204998, 1.0, 0.47950011, 0.1572992, 1.5374598e-12]}, "compare": {"ulp": 8}}
module @jit_chlo_erfc {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.erfc %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
