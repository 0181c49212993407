// chlo_broadcast_compare: a direction in words of CHLO
// argument {"dtype": "float64", "shape": [2, 3], "data": [[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]}
// argument {"dtype": "float64", "shape": [3], "data": [2.0, 1.0, 3.0]}
// result {"value": {"dtype": "bool", "shape": [2, 3], "data": [[true, true, true], [false, true, true]]}, "compare": {"exact": true}}
module @jit_broadcast {
  func.func public @main(%arg0: tensor<2x3xf64>, %arg1: tensor<3xf64>) -> tensor<2x3xi1> {
    %0 = chlo.broadcast_compare %arg0, %arg1 {compare_type = #chlo<comparison_type FLOAT>, comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xi1>
    return %0 : tensor<2x3xi1>
  }
}
