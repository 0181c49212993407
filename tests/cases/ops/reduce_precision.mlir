// reduce_precision: to float16: rounds to even and overflows to infinity
// argument {"dtype": "float32", "shape": [6], "data": [1.0004883, 1.0014648, 65504.0, 65520.0, 1e-08, "NaN"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.0, 1.0019531, 65504.0, "Infinity", 0.0, "NaN"]}, "compare": {"exact": true}}
module @jit_reduce_precision {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
