// if: the first branch when it holds
// argument {"dtype": "bool", "shape": [], "data": true}
// argument {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}
// result {"value": {"dtype": "float32", "shape": [2], "data": [-1.0, -2.0]}, "compare": {"exact": true}}
module @jit_if {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.if"(%arg0) ({
      %1 = stablehlo.negate %arg1 : tensor<2xf32>
      stablehlo.return %1 : tensor<2xf32>
    }, {
      stablehlo.return %arg1 : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
