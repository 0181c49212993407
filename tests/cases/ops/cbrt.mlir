// cbrt: the cubic root keeps the sign
// argument {"dtype": "float32", "shape": [6], "data": [-8.0, 0.0, 1.0, 27.0, "Infinity", 0.1]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-2.0, 0.0, 1.0, 3.0, "Infinity", 0.4641589]}, "compare": {"ulp": 4}}
module @jit_cbrt {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.cbrt %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
