// reduce_precision: without mantissa bits a number is a power of two, and NaN, which such a format has not, becomes infinity
// argument {"dtype": "float32", "shape": [6], "data": [1.4, 1.6, 3.0, "NaN", "-Infinity", 0.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.0, 2.0, 2.0, "Infinity", "-Infinity", 0.0]}, "compare": {"exact": true}}
module @jit_reduce_precision {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.reduce_precision %arg0, format = e8m0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
