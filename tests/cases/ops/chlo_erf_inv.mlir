// chlo_erf_inv: infinite at one
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, -0.5, 0.0, 0.5, 0.99, 1.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": ["-Infinity", -0.47693628, 0.0, 0.47693628, 1.8213866, "Infinity"]}, "compare": {"ulp": 8}}
module @jit_chlo_erf_inv {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.erf_inv %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
