// chlo_ragged_dot_batch_sizes: each batch has its own group sizes; the second leaves a row to no group
// argument {"dtype": "float32", "shape": [2, 5, 2], "data": [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 0.0], [1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0], [0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]}
// argument {"dtype": "float32", "shape": [2, 2, 2, 3], "data": [[[[-2.0, -1.0, 0.0], [1.0, 2.0, -2.0]], [[-1.0, 0.0, 1.0], [2.0, -2.0, -1.0]]], [[[0.0, 1.0, 2.0], [-2.0, -1.0, 0.0]], [[1.0, 2.0, -2.0], [-1.0, 0.0, 1.0]]]]}
// argument {"dtype": "int32", "shape": [2, 2], "data": [[2, 3], [4, 0]]}
// result {"value": {"dtype": "float32", "shape": [2, 5, 3], "data": [[[1.0, 2.0, -2.0], [-1.0, 4.0, -6.0], [-10.0, -1.0, 8.0], [0.0, 6.0, 12.0], [-4.0, -1.0, 2.0]], [[5.0, -8.0, -1.0], [7.0, -12.0, -1.0], [2.0, -2.0, -1.0], [4.0, -6.0, -1.0], [0.0, 0.0, 0.0]]]}, "compare": {"exact": true}}
module @jit_ragged_dot {
  func.func public @main(%arg0: tensor<2x5x2xf32>, %arg1: tensor<2x2x2x3xf32>, %arg2: tensor<2x2xi32>) -> tensor<2x5x3xf32> {
    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>}> : (tensor<2x5x2xf32>, tensor<2x2x2x3xf32>, tensor<2x2xi32>) -> tensor<2x5x3xf32>
    return %0 : tensor<2x5x3xf32>
  }
}
