// floor: towards minus infinity
// argument {"dtype": "float32", "shape": [6], "data": [-1.5, -0.5, 0.2, 2.0, "-Infinity", 7.9]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-2.0, -1.0, 0.0, 2.0, "-Infinity", 7.0]}, "compare": {"exact": true}}
module @jit_floor {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.floor %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
