// rng_bit_generator_three_fry_64: Threefry of 64 bits
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwEGAAAAAAAAAA=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint64", "shape": [3, 3], "base64": "X5XFP9zGOX5bIfSwtGCa4ZR0PQvcxPisidikqvTENWsHKaV1E4bd0/Hl0DXkf9GO2BkvfOPbhAK9u3neGP0TF54CnbBB9IR9"}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x3xui64>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x3xui64>)
    return %output_state, %output : tensor<2xui64>, tensor<3x3xui64>
  }
}
