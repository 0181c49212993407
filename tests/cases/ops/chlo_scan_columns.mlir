// chlo_scan_columns: sums along the second dimension
// argument {"dtype": "int32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[1, 3, 6], [4, 9, 15]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2], "data": [6, 15]}, "compare": {"exact": true}}
module @jit_scan {
  func.func public @main(%arg0: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<2xi32>) {
    %c = stablehlo.constant dense<0> : tensor<2xi32>
    %0:2 = chlo.scan(%arg0) inits(%c) dimension=1 {
    ^bb0(%arg1: tensor<2xi32>, %arg2: tensor<2xi32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<2xi32>
      stablehlo.return %1, %1 : tensor<2xi32>, tensor<2xi32>
    } : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)
    return %0#0, %0#1 : tensor<2x3xi32>, tensor<2xi32>
  }
}
