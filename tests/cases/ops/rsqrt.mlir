// rsqrt: infinite at zero
// argument {"dtype": "float32", "shape": [6], "data": [1.0, 4.0, 0.25, 0.0, "Infinity", 2.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.0, 0.5, 2.0, "Infinity", 0.0, 0.70710677]}, "compare": {"ulp": 4}}
module @jit_rsqrt {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.rsqrt %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
