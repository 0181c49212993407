// dynamic_pad_matrix: amounts that are arguments, other ones for each dimension: rows taken away at both ends
// argument {"dtype": "int16", "shape": [4, 2], "data": [[1, 2], [3, 4], [5, 6], [7, 8]]}
// argument {"dtype": "int16", "shape": [], "data": -1}
// argument {"dtype": "int32", "shape": [2], "data": [-3, 1]}
// argument {"dtype": "int32", "shape": [2], "data": [-2, 0]}
// argument {"dtype": "int32", "shape": [2], "data": [1, 2]}
// result {"value": {"dtype": "int16", "shape": [2, 5], "data": [[-1, -1, -1, -1, -1], [-1, 5, -1, -1, 6]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<4x2xi16>, %arg1: tensor<i16>, %arg2: tensor<2xi32>, %arg3: tensor<2xi32>, %arg4: tensor<2xi32>) -> tensor<2x5xi16> {
    %0 = stablehlo.dynamic_pad %arg0, %arg1, %arg2, %arg3, %arg4 : (tensor<4x2xi16>, tensor<i16>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x5xi16>
    return %0 : tensor<2x5xi16>
  }
}
