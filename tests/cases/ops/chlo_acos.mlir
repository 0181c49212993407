// chlo_acos: in radians
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [3.1415927, 2.0943952, 1.5707964, 1.0471976, 0.0, "NaN"]}, "compare": {"ulp": 4}}
module @jit_chlo_acos {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.acos %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
