// convert_narrow: integers keep their low bits
// argument {"dtype": "int32", "shape": [3], "data": [257, -1, 128]}
// result {"value": {"dtype": "int8", "shape": [3], "data": [1, -1, -128]}, "compare": {"exact": true}}
module @jit_convert_narrow {
  func.func public @main(%arg0: tensor<3xi32>) -> tensor<3xi8> {
    %0 = stablehlo.convert %arg0 : (tensor<3xi32>) -> tensor<3xi8>
    return %0 : tensor<3xi8>
  }
}
