// clamp_scalar: one pair of bounds, NaN stays
// argument {"dtype": "float32", "shape": [], "data": 0.0}
// argument {"dtype": "float32", "shape": [4], "data": [-1.0, 0.5, 2.0, "NaN"]}
// argument {"dtype": "float32", "shape": [], "data": 1.0}
// result {"value": {"dtype": "float32", "shape": [4], "data": [0.0, 0.5, 1.0, "NaN"]}, "compare": {"exact": true}}
module @jit_clamp_scalar {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> tensor<4xf32> {
    %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
