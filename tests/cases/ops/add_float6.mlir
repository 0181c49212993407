// add_float6: sums are made in float32 and rounded once
// argument {"dtype": "float6_e3m2fn", "shape": [4], "data": [28.0, 0.0625, 1.0, 20.0]}
// argument {"dtype": "float6_e2m3fn", "shape": [4], "data": [7.5, 0.125, 0.125, -7.5]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [28.0, 0.1875, 1.0, 12.0]}, "compare": {"exact": true}}
module @jit_add_float6 {
  func.func public @main(%arg0: tensor<4xf6E3M2FN>, %arg1: tensor<4xf6E2M3FN>) -> tensor<4xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<4xf6E2M3FN>) -> tensor<4xf6E3M2FN>
    %1 = stablehlo.add %arg0, %0 : tensor<4xf6E3M2FN>
    %2 = stablehlo.convert %1 : (tensor<4xf6E3M2FN>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
