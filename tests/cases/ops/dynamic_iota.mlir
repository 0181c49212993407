// dynamic_iota: a column counts
// result {"value": {"dtype": "int64", "shape": [4, 3], "data": [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main() -> tensor<4x3xi64> {
    %c = stablehlo.constant dense<[4, 3]> : tensor<2xi64>
    %0 = stablehlo.dynamic_iota %c, dim = 1 : (tensor<2xi64>) -> tensor<4x3xi64>
    return %0 : tensor<4x3xi64>
  }
}
