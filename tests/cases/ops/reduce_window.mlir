// reduce_window: largest of overlapping pairs in both dimensions, padded on the low side
// argument {"dtype": "float32", "shape": [3, 4], "data": [[1.0, -2.0, 5.0, 0.5], [7.0, "NaN", -1.0, 3.0], [2.0, 4.0, 6.0, 8.0]]}
// result {"value": {"dtype": "float32", "shape": [3, 2], "data": [[1.0, 5.0], [7.0, "NaN"], [7.0, "NaN"]]}, "compare": {"exact": true}}
module @jit_reduce_window {
  func.func public @main(%arg0: tensor<3x4xf32>) -> tensor<3x2xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{padding = dense<[[1, 0], [1, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
}
