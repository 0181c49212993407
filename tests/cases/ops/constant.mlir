// constant: a value in the program, and one repeated
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[1.0, 2.0], [3.0, 4.0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [3], "data": [7, 7, 7]}, "compare": {"exact": true}}
module @jit_constant {
  func.func public @main() -> (tensor<2x2xf32>, tensor<3xi32>) {
    %cst = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %c = stablehlo.constant dense<7> : tensor<3xi32>
    return %cst, %c : tensor<2x2xf32>, tensor<3xi32>
  }
}
