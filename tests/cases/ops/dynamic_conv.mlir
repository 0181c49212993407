// dynamic_conv: padding that is a value; the written one does not count
// argument {"dtype": "float32", "shape": [1, 4, 4, 1], "data": [[[[0.0], [1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0], [7.0]], [[8.0], [9.0], [10.0], [11.0]], [[12.0], [13.0], [14.0], [15.0]]]]}
// argument {"dtype": "float32", "shape": [3, 3, 1, 1], "data": [[[[-4.0]], [[-3.0]], [[-2.0]]], [[[-1.0]], [[0.0]], [[1.0]]], [[[2.0]], [[3.0]], [[4.0]]]]}
// result {"value": {"dtype": "float32", "shape": [1, 3, 3, 1], "data": [[[[49.0], [58.0], [31.0]], [[78.0], [78.0], [30.0]], [[78.0], [78.0], [18.0]]]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<1x4x4x1xf32>, %arg1: tensor<3x3x1x1xf32>) -> tensor<1x3x3x1xf32> {
    %c = stablehlo.constant dense<[[1, 0], [0, 1]]> : tensor<2x2xi32>
    %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<2> : tensor<2x2xi64>, window_strides = array<i64: 1, 1>}> : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi32>) -> tensor<1x3x3x1xf32>
    return %0 : tensor<1x3x3x1xf32>
  }
}
