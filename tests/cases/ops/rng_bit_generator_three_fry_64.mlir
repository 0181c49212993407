// rng_bit_generator_three_fry_64: Threefry of 64 bits
// argument {"dtype": "uint64", "shape": [2], "data": ["81985529216486895", "18446744073709551613"]}
// result {"value": {"dtype": "uint64", "shape": [2], "data": ["81985529216486895", 6]}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint64", "shape": [3, 3], "data": [["9095519571716445535", "16256412134126395739", "12463928418108273812"], ["7725297290937948297", "15266505729992108295", "10291147241650447857"], ["181511655089183192", "1662950970683407293", "9044622514639930014"]]}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x3xui64>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x3xui64>)
    return %output_state, %output : tensor<2xui64>, tensor<3x3xui64>
  }
}
