// reduce_window: sums from the end, and where the smallest element so far stood
// argument {"dtype": "int32", "shape": [2, 5], "data": [[1, 2, 3, 4, 5], [2147483647, 1, 0, -1, 9]]}
// argument {"dtype": "float32", "shape": [5], "data": [3.0, 3.0, 1.0, 2.0, -1.0]}
// result {"value": {"dtype": "int32", "shape": [2, 5], "data": [[15, 14, 12, 9, 5], [-2147483640, 9, 8, 8, 9]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [5], "data": [0, 0, 2, 2, 4]}, "compare": {"exact": true}}
module @jit_reduce_window_cumulative {
  func.func public @main(%arg0: tensor<2x5xi32>, %arg1: tensor<5xf32>) -> (tensor<2x5xi32>, tensor<5xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.reduce_window"(%arg0, %c) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 4]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<2x5xi32>, tensor<i32>) -> tensor<2x5xi32>
    %1 = stablehlo.iota dim = 0 : tensor<5xi32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %2:2 = "stablehlo.reduce_window"(%arg1, %1, %cst, %c) <{padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 5>}> ({
    ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %s = stablehlo.compare LE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %s, %a, %b : tensor<i1>, tensor<f32>
      %k = stablehlo.select %s, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %k : tensor<f32>, tensor<i32>
    }) : (tensor<5xf32>, tensor<5xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
    return %0, %2#1 : tensor<2x5xi32>, tensor<5xi32>
  }
}
