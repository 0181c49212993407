// chlo_ragged_dot: an empty group, and a row that no group has
// argument {"dtype": "float32", "shape": [6, 2], "data": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]}
// argument {"dtype": "float32", "shape": [3, 2, 2], "data": [[[-5.0, -4.0], [-3.0, -2.0]], [[-1.0, 0.0], [1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]}
// argument {"dtype": "int32", "shape": [3], "data": [2, 0, 3]}
// result {"value": {"dtype": "float32", "shape": [6, 2], "data": [[-3.0, -2.0], [-19.0, -14.0], [37.0, 46.0], [53.0, 66.0], [69.0, 86.0], [0.0, 0.0]]}, "compare": {"exact": true}}
module @jit_ragged_dot {
  func.func public @main(%arg0: tensor<6x2xf32>, %arg1: tensor<3x2x2xf32>, %arg2: tensor<3xi32>) -> tensor<6x2xf32> {
    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x2xf32>, tensor<3x2x2xf32>, tensor<3xi32>) -> tensor<6x2xf32>
    return %0 : tensor<6x2xf32>
  }
}
