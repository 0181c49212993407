// chlo_top_k_long: more elements than are looked at together
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[3000, 2999, 2998], [3000, 2999, 2998]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2, 3], "data": [[1913, 825, 2738], [1086, 2174, 261]]}, "compare": {"exact": true}}
module @jit_top_k {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %0 = stablehlo.iota dim = 1 : tensor<2x3000xi32>
    %1 = stablehlo.iota dim = 0 : tensor<2x3000xi32>
    %c = stablehlo.constant dense<2999> : tensor<2x3000xi32>
    %c_0 = stablehlo.constant dense<7919> : tensor<2x3000xi32>
    %c_1 = stablehlo.constant dense<3001> : tensor<2x3000xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<2x3000xi32>
    %2 = stablehlo.subtract %c, %0 : tensor<2x3000xi32>
    %3 = stablehlo.compare EQ, %1, %c_2, SIGNED : (tensor<2x3000xi32>, tensor<2x3000xi32>) -> tensor<2x3000xi1>
    %4 = stablehlo.select %3, %0, %2 : tensor<2x3000xi1>, tensor<2x3000xi32>
    %5 = stablehlo.multiply %4, %c_0 : tensor<2x3000xi32>
    %6 = stablehlo.remainder %5, %c_1 : tensor<2x3000xi32>
    %values, %indices = chlo.top_k(%6, k = 3) : tensor<2x3000xi32> -> (tensor<2x3xi32>, tensor<2x3xi32>)
    return %values, %indices : tensor<2x3xi32>, tensor<2x3xi32>
  }
}
