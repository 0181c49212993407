// bitcast_convert_join: and lose it
// argument {"dtype": "uint16", "shape": [2, 2], "data": [[1, 2], [3, 65535]]}
// result {"value": {"dtype": "uint32", "shape": [2], "data": [131073, 4294901763]}, "compare": {"exact": true}}
module @jit_bitcast_convert_join {
  func.func public @main(%arg0: tensor<2x2xui16>) -> tensor<2xui32> {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<2x2xui16>) -> tensor<2xui32>
    return %0 : tensor<2xui32>
  }
}
