// convert_float4: ties go to the even code, what is too large is the largest, NaN becomes a negative zero
// argument {"dtype": "float32", "shape": [8], "data": [0.25, 0.75, 2.5, 5.0, 5.5, -100.0, "-Infinity", "NaN"]}
// result {"value": {"dtype": "float32", "shape": [8], "data": [0.0, 1.0, 2.0, 4.0, 6.0, -6.0, -6.0, -0.0]}, "compare": {"exact": true}}
module @jit_convert_float4 {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf4E2M1FN>
    %1 = stablehlo.convert %0 : (tensor<8xf4E2M1FN>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
