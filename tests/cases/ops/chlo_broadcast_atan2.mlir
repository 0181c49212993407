// chlo_broadcast_atan2: angles of rows with a vector
// argument {"dtype": "float64", "shape": [2, 3], "data": [[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]}
// argument {"dtype": "float64", "shape": [3], "data": [2.0, 1.0, 3.0]}
// result {"value": {"dtype": "float64", "shape": [2, 3], "data": [[0.6435011087932844, -1.1071487177940904, 0.16514867741462683], [0.982793723247329, 0.24497866312686414, -0.3217505543966422]]}, "compare": {"ulp": 4}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xf64>, %arg1: tensor<3xf64>) -> tensor<2x3xf64> {
    %0 = chlo.broadcast_atan2 %arg0, %arg1 : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
    return %0 : tensor<2x3xf64>
  }
}
