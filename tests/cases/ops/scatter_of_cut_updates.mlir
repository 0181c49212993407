// scatter_of_cut_updates: updates on several shards meet in inputs that count once; windows outside are skipped
// argument {"dtype": "int32", "shape": [5, 2], "data": [[2, -3], [5, 7], [1, 1], [-2, 4], [9, 0]]}
// argument {"dtype": "bool", "shape": [5, 2], "data": [[true, false], [true, true], [false, false], [false, true], [true, false]]}
// argument {"dtype": "float32", "shape": [5, 2], "data": [[0.5, -0.0], [-1.0, 2.0], [3.0, "-Infinity"], [4.0, 5.0], [-6.0, 7.0]]}
// argument {"dtype": "int32", "shape": [7, 1], "data": [[1], [4], [1], [-1], [5], [0], [4]]}
// argument {"dtype": "int32", "shape": [7, 2], "data": [[2, 3], [1, -1], [3, 2], [5, 5], [7, 7], [-4, 2], [6, 1]]}
// argument {"dtype": "bool", "shape": [7, 2], "data": [[false, true], [false, false], [true, false], [true, true], [true, true], [false, false], [true, false]]}
// argument {"dtype": "float32", "shape": [7, 2], "data": [[1.0, 1.5], [0.5, -0.5], [1.5, 1.0], [2.5, 2.5], [3.5, 3.5], [-2.0, 1.0], [3.0, 0.5]]}
// result {"value": {"dtype": "int32", "shape": [5, 2], "data": [[-8, -6], [30, 42], [1, 1], [-2, 4], [54, 0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [5, 2], "data": [[-2, -1], [10, 12], [1, 1], [-2, 4], [16, 0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "bool", "shape": [5, 2], "data": [[false, false], [false, false], [false, false], [false, true], [false, false]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [5, 2], "data": [[0.5, 1.0], [1.5, 2.0], [3.0, "-Infinity"], [4.0, 5.0], [3.0, 7.0]]}, "compare": {"exact": true}}
module @jit_f {
  func.func public @main(%arg0: tensor<5x2xi32>, %arg1: tensor<5x2xi1>, %arg2: tensor<5x2xf32>, %arg3: tensor<7x1xi32>, %arg4: tensor<7x2xi32>, %arg5: tensor<7x2xi1>, %arg6: tensor<7x2xf32>) -> (tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xi1>, tensor<5x2xf32>) {
    %0 = "stablehlo.scatter"(%arg0, %arg3, %arg4) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg7: tensor<i32>, %arg8: tensor<i32>):
      %3 = stablehlo.multiply %arg7, %arg8 : tensor<i32>
      stablehlo.return %3 : tensor<i32>
    }) : (tensor<5x2xi32>, tensor<7x1xi32>, tensor<7x2xi32>) -> tensor<5x2xi32>
    %1:2 = "stablehlo.scatter"(%arg0, %arg1, %arg3, %arg4, %arg5) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg7: tensor<i32>, %arg8: tensor<i1>, %arg9: tensor<i32>, %arg10: tensor<i1>):
      %3 = stablehlo.add %arg7, %arg9 : tensor<i32>
      %4 = stablehlo.and %arg8, %arg10 : tensor<i1>
      stablehlo.return %3, %4 : tensor<i32>, tensor<i1>
    }) : (tensor<5x2xi32>, tensor<5x2xi1>, tensor<7x1xi32>, tensor<7x2xi32>, tensor<7x2xi1>) -> (tensor<5x2xi32>, tensor<5x2xi1>)
    %2 = "stablehlo.scatter"(%arg2, %arg3, %arg6) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %3 = stablehlo.maximum %arg7, %arg8 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<5x2xf32>, tensor<7x1xi32>, tensor<7x2xf32>) -> tensor<5x2xf32>
    return %0, %1#0, %1#1, %2 : tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xi1>, tensor<5x2xf32>
  }
}
