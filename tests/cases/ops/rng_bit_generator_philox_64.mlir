// rng_bit_generator_philox_64: Philox of 64 bits: two elements of a counter
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwEAAAAAAAAAAA=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint64", "shape": [5], "base64": "ZznOXB0IRAp8ka7ZlkOre5RRSAoG+MVB7i+C1tSjhTjzWetB4IVzMA=="}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)
    return %output_state, %output : tensor<2xui64>, tensor<5xui64>
  }
}
