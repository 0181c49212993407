// chlo_mulhi_unsigned: all 64 bits
// argument {"dtype": "uint64", "shape": [3], "base64": "AAAAAAAAAPAAAAAAAAAAgP//////////"}
// argument {"dtype": "uint64", "shape": [3], "base64": "EAAAAAAAAAACAAAAAAAAAP//////////"}
// result {"value": {"dtype": "uint64", "shape": [3], "base64": "DwAAAAAAAAABAAAAAAAAAP7/////////"}, "compare": {"exact": true}}
module @jit_mulhi {
  func.func public @main(%arg0: tensor<3xui64>, %arg1: tensor<3xui64>) -> tensor<3xui64> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    return %0 : tensor<3xui64>
  }
}
