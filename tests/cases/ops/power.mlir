// power: zero to the zero is one
// argument {"dtype": "float32", "shape": [5], "data": [2.0, 0.0, -2.0, 9.0, -8.0]}
// argument {"dtype": "float32", "shape": [5], "data": [10.0, 0.0, 3.0, 0.5, 0.5]}
// result {"value": {"dtype": "float32", "shape": [5], "data": [1024.0, 1.0, -8.0, 3.0, "NaN"]}, "compare": {"ulp": 4}}
module @jit_power {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> tensor<5xf32> {
    %0 = stablehlo.power %arg0, %arg1 : tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
