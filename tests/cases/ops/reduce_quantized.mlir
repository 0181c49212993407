// reduce_quantized: the region works on quantized scalars
// argument {"dtype": "int8", "shape": [3, 2], "data": [[120, 1], [10, 2], [-40, 3]]}
// result {"value": {"dtype": "int8", "shape": [2], "data": [120, 3]}, "compare": {"exact": true}}
module @jit_reduce_quantized {
  func.func public @main(%arg0: tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01>>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>> {
    %cst = stablehlo.constant() <{value = dense<-128> : tensor<i8>}> : () -> tensor<!quant.uniform<i8:f32, 5.000000e-01>>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01>>, tensor<!quant.uniform<i8:f32, 5.000000e-01>>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
    return %0 : tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
  }
}
