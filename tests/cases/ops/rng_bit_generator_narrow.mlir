// rng_bit_generator_narrow: the low bits of 32
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH//////////w=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint16", "shape": [6], "data": [14695, 2077, 37244, 17302, 20884, 63494]}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui16>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui16>)
    return %output_state, %output : tensor<2xui64>, tensor<6xui16>
  }
}
