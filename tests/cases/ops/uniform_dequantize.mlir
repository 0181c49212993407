// uniform_dequantize: each slice of the second dimension has a scale and a zero point
// argument {"dtype": "int8", "shape": [2, 2], "data": [[-128, -128], [127, 5]]}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[-65.5, -30.75], [62.0, 2.5]]}, "compare": {"exact": true}}
module @jit_uniform_dequantize {
  func.func public @main(%arg0: tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01:3,2.500000e-01:-5}>>) -> tensor<2x2xf32> {
    %0 = stablehlo.uniform_dequantize %arg0 : (tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01:3,2.500000e-01:-5}>>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}
