// bitcast_convert_split: smaller elements get a dimension more, low bits first
// argument {"dtype": "uint32", "shape": [2], "data": [131073, 4294901763]}
// result {"value": {"dtype": "uint16", "shape": [2, 2], "data": [[1, 2], [3, 65535]]}, "compare": {"exact": true}}
module @jit_bitcast_convert_split {
  func.func public @main(%arg0: tensor<2xui32>) -> tensor<2x2xui16> {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xui32>) -> tensor<2x2xui16>
    return %0 : tensor<2x2xui16>
  }
}
