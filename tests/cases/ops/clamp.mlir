// clamp: bounds for each element
// argument {"dtype": "float32", "shape": [3], "data": [0.0, 0.0, 0.0]}
// argument {"dtype": "float32", "shape": [3], "data": [-1.0, 0.5, 2.0]}
// argument {"dtype": "float32", "shape": [3], "data": [1.0, 1.0, 1.0]}
// result {"value": {"dtype": "float32", "shape": [3], "data": [0.0, 0.5, 1.0]}, "compare": {"exact": true}}
module @jit_clamp {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.clamp %arg0, %arg1, %arg2 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
