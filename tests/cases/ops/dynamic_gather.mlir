// dynamic_gather: sizes of windows that are arguments follow from the result
// argument {"dtype": "int32", "shape": [4, 5], "data": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]}
// argument {"dtype": "int32", "shape": [2, 1], "data": [[3], [0]]}
// argument {"dtype": "int32", "shape": [2], "data": [1, 5]}
// result {"value": {"dtype": "int32", "shape": [2, 5], "data": [[15, 16, 17, 18, 19], [0, 1, 2, 3, 4]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<4x5xi32>, %arg1: tensor<2x1xi32>, %arg2: tensor<2xi32>) -> tensor<2x5xi32> {
    %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<4x5xi32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x5xi32>
    return %0 : tensor<2x5xi32>
  }
}
