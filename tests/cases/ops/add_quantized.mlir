// add_quantized: operands and result have parameters of their own, per axis
// argument {"dtype": "int8", "shape": [2, 2], "data": [[1, 2], [-3, 100]]}
// argument {"dtype": "int8", "shape": [2, 2], "data": [[10, 20], [30, 127]]}
// result {"value": {"dtype": "int8", "shape": [2, 2], "data": [[5, 6], [13, 90]]}, "compare": {"exact": true}}
module @jit_add_quantized {
  func.func public @main(%arg0: tensor<2x2x!quant.uniform<i8:f32, 5.000000e-01:1>>, %arg1: tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01:1}>>) -> tensor<2x2x!quant.uniform<i8<-90:90>:f32:1, {1.000000e+00,5.000000e-01:-5}>> {
    %0 = stablehlo.add %arg0, %arg1 : (tensor<2x2x!quant.uniform<i8:f32, 5.000000e-01:1>>, tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01:1}>>) -> tensor<2x2x!quant.uniform<i8<-90:90>:f32:1, {1.000000e+00,5.000000e-01:-5}>>
    return %0 : tensor<2x2x!quant.uniform<i8<-90:90>:f32:1, {1.000000e+00,5.000000e-01:-5}>>
  }
}
