// count_leading_zeros: 32 for zero
// argument {"dtype": "int32", "shape": [6], "data": [0, 1, 255, 2147483647, -1, 65536]}
// result {"value": {"dtype": "int32", "shape": [6], "data": [32, 31, 24, 1, 0, 15]}, "compare": {"exact": true}}
module @jit_count_leading_zeros {
  func.func public @main(%arg0: tensor<6xi32>) -> tensor<6xi32> {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<6xi32>
    return %0 : tensor<6xi32>
  }
}
