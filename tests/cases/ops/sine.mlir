// sine: in radians
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 0.5, -1.0, 1.5707964, 10.0, 100.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.0, 0.47942555, -0.84147096, 1.0, -0.5440211, -0.50636566]}, "compare": {"ulp": 4}}
module @jit_sine {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.sine %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
