// dot_general_quantized: quantized by quantized, and floats by weights that are quantized per axis (hybrid)
// argument {"dtype": "int8", "shape": [2, 2], "data": [[3, 5], [-1, 7]]}
// argument {"dtype": "int8", "shape": [2, 2], "data": [[2, -4], [6, 8]]}
// argument {"dtype": "float32", "shape": [2, 2], "data": [[1.0, 2.0], [-0.5, 4.0]]}
// result {"value": {"dtype": "int32", "shape": [2, 2], "data": [[24, 16], [32, 48]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[7.0, 3.0], [11.5, 8.5]]}, "compare": {"exact": true}}
module @jit_dot_general_quantized {
  func.func public @main(%arg0: tensor<2x2x!quant.uniform<i8:f32, 5.000000e-01:3>>, %arg1: tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01}>>, %arg2: tensor<2x2xf32>) -> (tensor<2x2x!quant.uniform<i32:f32:1, {1.250000e-01,1.250000e-01}>>, tensor<2x2xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x2x!quant.uniform<i8:f32, 5.000000e-01:3>>, tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01}>>) -> tensor<2x2x!quant.uniform<i32:f32:1, {1.250000e-01,1.250000e-01}>>
    %1 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01}>>) -> tensor<2x2xf32>
    return %0, %1 : tensor<2x2x!quant.uniform<i32:f32:1, {1.250000e-01,1.250000e-01}>>, tensor<2x2xf32>
  }
}
