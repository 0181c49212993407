// rng_bit_generator_bytes: the low bits of 32, scalar shapes too
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH+/////////w=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint8", "shape": [], "data": 95}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<ui8>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui8>)
    return %output_state, %output : tensor<2xui64>, tensor<ui8>
  }
}
