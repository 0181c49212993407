// bitcast_convert: the same bits
// argument {"dtype": "float32", "shape": [3], "data": [1.0, -2.0, 0.0]}
// result {"value": {"dtype": "int32", "shape": [3], "data": [1065353216, -1073741824, 0]}, "compare": {"exact": true}}
module @jit_bitcast_convert {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xi32> {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3xi32>
    return %0 : tensor<3xi32>
  }
}
