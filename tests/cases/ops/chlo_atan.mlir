// chlo_atan: in radians
// argument {"dtype": "float32", "shape": [6], "data": ["-Infinity", -0.5, 0.0, 0.5, 1.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.5707964, -0.4636476, 0.0, 0.4636476, 0.7853982, 1.5707964]}, "compare": {"ulp": 4}}
module @jit_chlo_atan {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.atan %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
