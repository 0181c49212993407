// set_dimension_size: fewer elements of a dimension
// argument {"dtype": "int32", "shape": [4, 5], "data": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]}
// result {"value": {"dtype": "int32", "shape": [4, 2], "data": [[0, 1], [5, 6], [10, 11], [15, 16]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<4x5xi32>) -> tensor<4x2xi32> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.set_dimension_size %arg0, %c, dim = 1 : (tensor<4x5xi32>, tensor<i32>) -> tensor<4x?xi32>
    %1 = stablehlo.reshape %0 : (tensor<4x?xi32>) -> tensor<4x2xi32>
    return %1 : tensor<4x2xi32>
  }
}
