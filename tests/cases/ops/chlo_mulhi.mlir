// chlo_mulhi: signs, and all 64 bits
// argument {"dtype": "int64", "shape": [5], "base64": "AAAAAAAAABAAAAAAAAAA8P///////////////////38AAAAAAAAAgA=="}
// argument {"dtype": "int64", "shape": [5], "base64": "EAAAAAAAAAAQAAAAAAAAAP///////////////////3//////////fw=="}
// result {"value": {"dtype": "int64", "shape": [5], "base64": "AQAAAAAAAAD//////////wAAAAAAAAAA/////////z8AAAAAAAAAwA=="}, "compare": {"exact": true}}
module @jit_mulhi {
  func.func public @main(%arg0: tensor<5xi64>, %arg1: tensor<5xi64>) -> tensor<5xi64> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
    return %0 : tensor<5xi64>
  }
}
