// chlo_mulhi_unsigned: all 64 bits
// argument {"dtype": "uint64", "shape": [3], "data": ["17293822569102704640", "9223372036854775808", "18446744073709551615"]}
// argument {"dtype": "uint64", "shape": [3], "data": [16, 2, "18446744073709551615"]}
// result {"value": {"dtype": "uint64", "shape": [3], "data": [15, 1, "18446744073709551614"]}, "compare": {"exact": true}}
module @jit_mulhi {
  func.func public @main(%arg0: tensor<3xui64>, %arg1: tensor<3xui64>) -> tensor<3xui64> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    return %0 : tensor<3xui64>
  }
}
