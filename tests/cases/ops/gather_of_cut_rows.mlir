// gather_of_cut_rows: windows of one index take what their shard has, bit by bit: signs of zeros, NaN, clamped and unsigned indices
// argument {"dtype": "float32", "shape": [5, 3], "data": [[1.5, -0.0, "NaN"], [0.0, "Infinity", -2.0], [-0.0, -0.0, "-Infinity"], [3.0, 4.0, 5.0], [6.0, -7.0, 8.0]]}
// argument {"dtype": "complex64", "shape": [4, 2], "data": [[[1.0, 2.0], [-0.0, 0.0]], [[3.0, -1.0], [0.0, -0.0]], [[0.0, 0.0], [0.0, 5.0]], [[7.0, 0.0], [8.0, 0.0]]]}
// argument {"dtype": "bool", "shape": [3, 2], "data": [[true, false], [false, true], [true, true]]}
// argument {"dtype": "float16", "shape": [5, 3], "data": [[1.5, -0.0, "NaN"], [0.0, "Infinity", -2.0], [-0.0, -0.0, "-Infinity"], [3.0, 4.0, 5.0], [6.0, -7.0, 8.0]]}
// argument {"dtype": "int32", "shape": [6, 1], "data": [[3], [-1], [0], [2], [9], [1]]}
// argument {"dtype": "uint8", "shape": [4, 1], "data": [[0], [200], [2], [1]]}
// argument {"dtype": "int64", "shape": [4, 2], "data": [[0, 2], [4, 1], [2, 0], [-3, 7]]}
// result {"value": {"dtype": "float32", "shape": [6, 3], "data": [[3.0, 4.0, 5.0], [1.5, -0.0, "NaN"], [1.5, -0.0, "NaN"], [-0.0, -0.0, "-Infinity"], [6.0, -7.0, 8.0], [0.0, "Infinity", -2.0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "complex64", "shape": [6, 2], "data": [[[7.0, 0.0], [8.0, 0.0]], [[1.0, 2.0], [-0.0, 0.0]], [[1.0, 2.0], [-0.0, 0.0]], [[0.0, 0.0], [0.0, 5.0]], [[7.0, 0.0], [8.0, 0.0]], [[3.0, -1.0], [0.0, -0.0]]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "bool", "shape": [4, 2], "data": [[true, false], [true, true], [true, true], [false, true]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [4], "data": ["NaN", -7.0, -0.0, "NaN"]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float16", "shape": [6, 5, 1], "data": [[["NaN"], [-2.0], ["-Infinity"], [5.0], [8.0]], [[1.5], [0.0], [-0.0], [3.0], [6.0]], [[1.5], [0.0], [-0.0], [3.0], [6.0]], [["NaN"], [-2.0], ["-Infinity"], [5.0], [8.0]], [["NaN"], [-2.0], ["-Infinity"], [5.0], [8.0]], [[-0.0], ["Infinity"], [-0.0], [4.0], [-7.0]]]}, "compare": {"exact": true}}
module @jit_f {
  func.func public @main(%arg0: tensor<5x3xf32>, %arg1: tensor<4x2xcomplex<f32>>, %arg2: tensor<3x2xi1>, %arg3: tensor<5x3xf16>, %arg4: tensor<6x1xi32>, %arg5: tensor<4x1xui8>, %arg6: tensor<4x2xi64>) -> (tensor<6x3xf32>, tensor<6x2xcomplex<f32>>, tensor<4x2xi1>, tensor<4xf32>, tensor<6x5x1xf16>) {
    %0 = "stablehlo.gather"(%arg0, %arg4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<6x1xi32>) -> tensor<6x3xf32>
    %1 = "stablehlo.gather"(%arg1, %arg4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2>}> : (tensor<4x2xcomplex<f32>>, tensor<6x1xi32>) -> tensor<6x2xcomplex<f32>>
    %2 = "stablehlo.gather"(%arg2, %arg5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2>}> : (tensor<3x2xi1>, tensor<4x1xui8>) -> tensor<4x2xi1>
    %3 = "stablehlo.gather"(%arg0, %arg6) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<5x3xf32>, tensor<4x2xi64>) -> tensor<4xf32>
    %4 = "stablehlo.gather"(%arg3, %arg4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 5, 1>}> : (tensor<5x3xf16>, tensor<6x1xi32>) -> tensor<6x5x1xf16>
    return %0, %1, %2, %3, %4 : tensor<6x3xf32>, tensor<6x2xcomplex<f32>>, tensor<4x2xi1>, tensor<4xf32>, tensor<6x5x1xf16>
  }
}
