// chlo_mulhi_narrow: bytes with a sign
// argument {"dtype": "int8", "shape": [3], "data": [64, -64, -64]}
// argument {"dtype": "int8", "shape": [3], "data": [4, 4, -4]}
// result {"value": {"dtype": "int8", "shape": [3], "data": [1, -1, 1]}, "compare": {"exact": true}}
module @jit_mulhi {
  func.func public @main(%arg0: tensor<3xi8>, %arg1: tensor<3xi8>) -> tensor<3xi8> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
    return %0 : tensor<3xi8>
  }
}
