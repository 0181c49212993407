// chlo_ragged_dot_contracting_sizes: groups of the contracting dimension, other ones for each batch and row
// argument {"dtype": "float32", "shape": [2, 3, 4], "data": [[[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 1.0, 2.0], [3.0, 4.0, 0.0, 1.0]], [[2.0, 3.0, 4.0, 0.0], [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]]]}
// argument {"dtype": "float32", "shape": [2, 4, 2], "data": [[[-1.0, 0.0], [1.0, -1.0], [0.0, 1.0], [-1.0, 0.0]], [[1.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, -1.0]]]}
// argument {"dtype": "int32", "shape": [2, 3, 2], "data": [[[1, 3], [2, 2], [0, 4]], [[4, 0], [1, 1], [3, 1]]]}
// result {"value": {"dtype": "float32", "shape": [2, 2, 3, 2], "data": [[[[0.0, 0.0], [-4.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [1.0, -1.0], [-2.0, 1.0]]], [[[-2.0, 1.0], [-2.0, 1.0], [0.0, -4.0]], [[0.0, 0.0], [0.0, 2.0], [3.0, -3.0]]]]}, "compare": {"exact": true}}
module @jit_ragged_dot {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x4x2xf32>, %arg2: tensor<2x3x2xi32>) -> tensor<2x2x3x2xf32> {
    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [2], rhs_group_dimensions = []>}> : (tensor<2x3x4xf32>, tensor<2x4x2xf32>, tensor<2x3x2xi32>) -> tensor<2x2x3x2xf32>
    return %0 : tensor<2x2x3x2xf32>
  }
}
