// uniform_quantize: divided, moved by the zero point, held in range and rounded to even; requantized by way of floats
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 0.75, 1.25, -100.0, 100.0, "NaN"]}
// result {"value": {"dtype": "int8", "shape": [6], "data": [3, 4, 6, -128, 127, 0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint8", "shape": [6], "data": [100, 100, 102, 34, 162, 98]}, "compare": {"exact": true}}
module @jit_uniform_quantize {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>, tensor<6x!quant.uniform<u8<1:255>:f32, 1.000000e+00:100>>) {
    %0 = stablehlo.uniform_quantize %arg0 : (tensor<6xf32>) -> tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>
    %1 = stablehlo.uniform_quantize %0 : (tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<6x!quant.uniform<u8<1:255>:f32, 1.000000e+00:100>>
    return %0, %1 : tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>, tensor<6x!quant.uniform<u8<1:255>:f32, 1.000000e+00:100>>
  }
}
