// round_nearest_even: halves to even
// argument {"dtype": "float32", "shape": [7], "data": [0.5, 1.5, 2.5, -0.5, -2.5, 2.4, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [7], "data": [0.0, 2.0, 2.0, -0.0, -2.0, 2.0, "Infinity"]}, "compare": {"exact": true}}
module @jit_round_nearest_even {
  func.func public @main(%arg0: tensor<7xf32>) -> tensor<7xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<7xf32>
    return %0 : tensor<7xf32>
  }
}
