// add_integer: integers wrap
// argument {"dtype": "int32", "shape": [2], "data": [2147483647, 1]}
// argument {"dtype": "int32", "shape": [2], "data": [1, 2]}
// result {"value": {"dtype": "int32", "shape": [2], "data": [-2147483648, 3]}, "compare": {"exact": true}}
module @jit_add_integer {
  func.func public @main(%arg0: tensor<2xi32>, %arg1: tensor<2xi32>) -> tensor<2xi32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
