// chlo_erf: odd, saturates at one
// argument {"dtype": "float32", "shape": [6], "data": [-3.0, -0.5, 0.0, 0.5, 1.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-0.9999779, -0.5204999, 0.0, 0.5204999, 0.8427008, 1.0]}, "compare": {"ulp": 4}}
module @jit_chlo_erf {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.erf %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
