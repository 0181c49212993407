// convert_to_boolean: whatever is not zero is true
// argument {"dtype": "float32", "shape": [4], "data": [0.0, -0.0, 0.5, "NaN"]}
// result {"value": {"dtype": "bool", "shape": [4], "data": [false, false, true, true]}, "compare": {"exact": true}}
module @jit_convert_to_boolean {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
}
