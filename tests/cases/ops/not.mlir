// not: logical negation
// argument {"dtype": "bool", "shape": [2], "data": [true, false]}
// result {"value": {"dtype": "bool", "shape": [2], "data": [false, true]}, "compare": {"exact": true}}
module @jit_not {
  func.func public @main(%arg0: tensor<2xi1>) -> tensor<2xi1> {
    %0 = stablehlo.not %arg0 : tensor<2xi1>
    return %0 : tensor<2xi1>
  }
}
