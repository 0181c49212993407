// while: runs until the condition fails
// argument {"dtype": "int32", "shape": [], "data": 1}
// argument {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}
// result {"value": {"dtype": "int32", "shape": [], "data": 5}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2], "data": [16.0, 32.0]}, "compare": {"exact": true}}
module @jit_while {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<i32>, tensor<2xf32>
    cond {
      %c = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %iterArg, %c : tensor<i32>
      %2 = stablehlo.add %iterArg_0, %iterArg_0 : tensor<2xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<2xf32>
    }
    return %0#0, %0#1 : tensor<i32>, tensor<2xf32>
  }
}
