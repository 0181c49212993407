// scatter_of_itself: an array that is its own update is read as it was
// argument {"dtype": "int32", "shape": [4, 2], "data": [[1, 2], [3, 4], [5, 6], [7, 8]]}
// argument {"dtype": "int32", "shape": [4, 1], "data": [[1], [0], [1], [3]]}
// result {"value": {"dtype": "int32", "shape": [4, 2], "data": [[4, 6], [9, 12], [5, 6], [14, 16]]}, "compare": {"exact": true}}
module @jit_f {
  func.func public @main(%arg0: tensor<4x2xi32>, %arg1: tensor<4x1xi32>) -> tensor<4x2xi32> {
    %0 = stablehlo.negate %arg0 : tensor<4x2xi32>
    %1 = stablehlo.negate %0 : tensor<4x2xi32>
    %2 = "stablehlo.scatter"(%1, %arg1, %1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
      %3 = stablehlo.add %arg2, %arg3 : tensor<i32>
      stablehlo.return %3 : tensor<i32>
    }) : (tensor<4x2xi32>, tensor<4x1xi32>, tensor<4x2xi32>) -> tensor<4x2xi32>
    return %2 : tensor<4x2xi32>
  }
}
