// chlo_square: the element times itself
// argument {"dtype": "float32", "shape": [4], "data": [-3.0, 0.0, 0.5, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [9.0, 0.0, 0.25, "Infinity"]}, "compare": {"exact": true}}
module @jit_chlo_square {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.square %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
