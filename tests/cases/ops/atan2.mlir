// atan2: quadrants, and zeros with their signs
// argument {"dtype": "float32", "shape": [6], "data": [1.0, -1.0, 0.0, -0.0, 1.0, -2.0]}
// argument {"dtype": "float32", "shape": [6], "data": [1.0, -1.0, 1.0, -1.0, 0.0, 0.5]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.7853982, -2.3561945, 0.0, -3.1415927, 1.5707964, -1.3258177]}, "compare": {"ulp": 4}}
module @jit_atan2 {
  func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.atan2 %arg0, %arg1 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
