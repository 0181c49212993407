// add_boolean: of booleans it is the logical or
// argument {"dtype": "bool", "shape": [4], "data": [false, false, true, true]}
// argument {"dtype": "bool", "shape": [4], "data": [false, true, false, true]}
// result {"value": {"dtype": "bool", "shape": [4], "data": [false, true, true, true]}, "compare": {"exact": true}}
module @jit_add_boolean {
  func.func public @main(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) -> tensor<4xi1> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xi1>
    return %0 : tensor<4xi1>
  }
}
