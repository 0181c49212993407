// chlo_asin: in radians
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.5707964, -0.5235988, 0.0, 0.5235988, 1.5707964, "NaN"]}, "compare": {"ulp": 4}}
module @jit_chlo_asin {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.asin %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
