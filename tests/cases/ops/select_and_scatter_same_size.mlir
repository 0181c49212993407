// select_and_scatter: as many windows as elements
// argument {"dtype": "int32", "shape": [8], "data": [3, 1, 4, 1, 5, 9, 2, 6]}
// argument {"dtype": "int32", "shape": [8], "data": [1, 2, 3, 4, 5, 6, 7, 8]}
// result {"value": {"dtype": "int32", "shape": [8], "data": [1, 0, 5, 0, 4, 18, 0, 8]}, "compare": {"exact": true}}
module @jit_select_and_scatter_same_size {
  func.func public @main(%arg0: tensor<8xi32>, %arg1: tensor<8xi32>) -> tensor<8xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %c) <{padding = dense<1> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.compare GE, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<8xi32>, tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    return %0 : tensor<8xi32>
  }
}
