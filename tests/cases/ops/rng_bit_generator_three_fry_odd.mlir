// rng_bit_generator_three_fry_odd: Threefry: no even dimension, so pairs along the largest, with one too many
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwEGAAAAAAAAAA=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint32", "shape": [3, 5], "data": [[1069913439, 2117715676, 2968789339, 3784990900, 188576916], [2862930057, 1798685940, 1973758215, 3554510355, 902882801], [2083461592, 42261475, 3732519869, 387185944, 2963079838]]}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
    return %output_state, %output : tensor<2xui64>, tensor<3x5xui32>
  }
}
