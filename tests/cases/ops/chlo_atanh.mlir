// chlo_atanh: infinite at one
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": ["-Infinity", -0.54930615, 0.0, 0.54930615, "Infinity", "NaN"]}, "compare": {"ulp": 4}}
module @jit_chlo_atanh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.atanh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
