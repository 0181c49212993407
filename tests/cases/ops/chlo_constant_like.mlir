// chlo_constant_like: a number over the shape
// argument {"dtype": "float32", "shape": [2, 2], "data": [[0.0, 0.0], [0.0, 0.0]]}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[2.5, 2.5], [2.5, 2.5]]}, "compare": {"exact": true}}
module @jit_constant_like {
  func.func public @main(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "chlo.constant_like"(%arg0) <{value = 2.500000e+00 : f32}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}
