// get_dimension_size: a scalar
// argument {"dtype": "float32", "shape": [3, 4], "data": [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]}
// result {"value": {"dtype": "int32", "shape": [], "data": 4}, "compare": {"exact": true}}
module @jit_get_dimension_size {
  func.func public @main(%arg0: tensor<3x4xf32>) -> tensor<i32> {
    %0 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<3x4xf32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
