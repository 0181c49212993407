// chlo_ragged_dot_contracting: groups of the contracting dimension: a product for each
// argument {"dtype": "float32", "shape": [6, 2], "data": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]}
// argument {"dtype": "float32", "shape": [6, 3], "data": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0], [12.0, 13.0, 14.0], [15.0, 16.0, 17.0]]}
// argument {"dtype": "int32", "shape": [3], "data": [2, 0, 3]}
// result {"value": {"dtype": "float32", "shape": [3, 2, 3], "data": [[[6.0, 8.0, 10.0], [9.0, 13.0, 17.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[174.0, 192.0, 210.0], [201.0, 222.0, 243.0]]]}, "compare": {"exact": true}}
module @jit_ragged_dot {
  func.func public @main(%arg0: tensor<6x2xf32>, %arg1: tensor<6x3xf32>, %arg2: tensor<3xi32>) -> tensor<3x2x3xf32> {
    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0], rhs_group_dimensions = []>}> : (tensor<6x2xf32>, tensor<6x3xf32>, tensor<3xi32>) -> tensor<3x2x3xf32>
    return %0 : tensor<3x2x3xf32>
  }
}
