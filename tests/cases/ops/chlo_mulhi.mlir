// chlo_mulhi: signs, and all 64 bits
// argument {"dtype": "int64", "shape": [5], "data": ["1152921504606846976", "-1152921504606846976", -1, "9223372036854775807", "-9223372036854775808"]}
// argument {"dtype": "int64", "shape": [5], "data": [16, 16, -1, "9223372036854775807", "9223372036854775807"]}
// result {"value": {"dtype": "int64", "shape": [5], "data": [1, -1, 0, "4611686018427387903", "-4611686018427387904"]}, "compare": {"exact": true}}
module @jit_mulhi {
  func.func public @main(%arg0: tensor<5xi64>, %arg1: tensor<5xi64>) -> tensor<5xi64> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    return %0 : tensor<5xi64>
  }
}
