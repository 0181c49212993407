// chlo_constant: as stablehlo.constant
// result {"value": {"dtype": "int32", "shape": [2], "data": [1, 2]}, "compare": {"exact": true}}
module @jit_constant {
  func.func public @main() -> tensor<2xi32> {
    %0 = chlo.constant dense<[1, 2]> : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
