// popcnt: one bits
// argument {"dtype": "int32", "shape": [6], "data": [0, 1, 255, -1, -2147483648, 7]}
// result {"value": {"dtype": "int32", "shape": [6], "data": [0, 1, 8, 32, 1, 3]}, "compare": {"exact": true}}
module @jit_popcnt {
  func.func public @main(%arg0: tensor<6xi32>) -> tensor<6xi32> {
    %0 = stablehlo.popcnt %arg0 : tensor<6xi32>
    return %0 : tensor<6xi32>
  }
}
