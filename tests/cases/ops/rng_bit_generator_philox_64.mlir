// rng_bit_generator_philox_64: Philox of 64 bits: two elements of a counter
// argument {"dtype": "uint64", "shape": [2], "data": ["81985529216486895", "18446744073709551613"]}
// result {"value": {"dtype": "uint64", "shape": [2], "data": ["81985529216486895", 0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "uint64", "shape": [5], "data": ["739725160999696743", "8911290602858910076", "4739466887703318932", "4072841572553732078", "3491281334367377907"]}, "compare": {"exact": true}}
module @jit_bits {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)
    return %output_state, %output : tensor<2xui64>, tensor<5xui64>
  }
}
