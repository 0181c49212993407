// select_and_scatter: overlapping windows, the first of equal elements is kept
// argument {"dtype": "float32", "shape": [2, 3, 4], "data": [[[1.0, 5.0, 2.0, 5.0], [3.0, 0.0, 5.0, 1.0], [4.0, 4.0, 4.0, 4.0]], [[9.0, 8.0, 7.0, 6.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 1.0]]]}
// argument {"dtype": "float32", "shape": [2, 2, 3], "data": [[[3.0, 5.0, 7.0], [8.0, 4.0, 5.0]], [[2.0, 7.0, 3.0], [2.0, 6.0, 8.0]]]}
// result {"value": {"dtype": "float32", "shape": [2, 3, 4], "data": [[[0.0, 8.0, 0.0, 7.0], [0.0, 0.0, 9.0, 0.0], [8.0, 0.0, 0.0, 0.0]], [[2.0, 7.0, 3.0, 0.0], [0.0, 2.0, 6.0, 8.0], [0.0, 0.0, 0.0, 0.0]]]}, "compare": {"exact": true}}
module @jit_select_and_scatter {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x2x3xf32>) -> tensor<2x3x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %cst) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
