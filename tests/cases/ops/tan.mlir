// tan: in radians
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 0.5, -1.0, 1.5, 10.0, 3.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 0.5463025, -1.5574077, 14.10142, 0.64836085, -0.14254655]}, "compare": {"ulp": 4}}
module @jit_tan {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.tan %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
