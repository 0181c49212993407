// convert: towards zero; NaN is zero; beyond the range is its end
// argument {"dtype": "float32", "shape": [5], "data": [1.9, -1.9, "NaN", 3000000000.0, -3000000000.0]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [1, -1, 0, 2147483647, -2147483648]}, "compare": {"exact": true}}
module @jit_convert {
  func.func public @main(%arg0: tensor<5xf32>) -> tensor<5xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<5xf32>) -> tensor<5xi32>
    return %0 : tensor<5xi32>
  }
}
