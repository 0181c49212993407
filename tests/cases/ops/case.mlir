// case: the branch of the index, the last one when it is outside
// argument {"dtype": "int32", "shape": [], "data": 0}
// argument {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [2], "data": [-1.0, -2.0]}, "compare": {"exact": true}}
module @jit_case {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.negate %arg1 : tensor<2xf32>
      stablehlo.return %1 : tensor<2xf32>
    }, {
      stablehlo.return %arg1 : tensor<2xf32>
    }, {
      %1 = stablehlo.add %arg1, %arg1 : tensor<2xf32>
      stablehlo.return %1 : tensor<2xf32>
    }) : (tensor<i32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
