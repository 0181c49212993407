// compare_unsigned: the sign bit is a digit
// argument {"dtype": "uint32", "shape": [3], "data": [0, 4294967295, 5]}
// argument {"dtype": "uint32", "shape": [3], "data": [1, 1, 5]}
// result {"value": {"dtype": "bool", "shape": [3], "data": [true, false, false]}, "compare": {"exact": true}}
module @jit_compare_unsigned {
  func.func public @main(%arg0: tensor<3xui32>, %arg1: tensor<3xui32>) -> tensor<3xi1> {
    %0 = stablehlo.compare LT, %arg0, %arg1, UNSIGNED : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xi1>
    return %0 : tensor<3xi1>
  }
}
