// while_never: a body that never runs leaves everything as it was
// argument {"dtype": "int32", "shape": [], "data": 9}
// result {"value": {"dtype": "int32", "shape": [], "data": 9}, "compare": {"exact": true}}
module @jit_while_never {
  func.func public @main(%arg0: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
    cond {
      %c = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %1 = stablehlo.add %iterArg, %iterArg : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
    return %0 : tensor<i32>
  }
}
