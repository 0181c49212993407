// rng_bit_generator_philox: Philox: four elements of a counter, whose upper half takes the carry
// argument {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwH9/////////w=="}
// result {"value": {"dtype": "uint64", "shape": [2], "base64": "782riWdFIwEBAAAAAAAAAA=="}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint32", "shape": [3, 5], "data": [[1557018983, 172230685, 3652096380, 2074821526, 172511636], [1103493126, 3598856174, 948282324, 1105943027, 812877280], [1535849353, 2724394620, 1879495268, 3609187550, 989808270]]}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
    return %output_state, %output : tensor<2xui64>, tensor<3x5xui32>
  }
}
