// dynamic_reshape: to a shape that is computed from sizes
// argument {"dtype": "float32", "shape": [2, 3], "data": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]}
// result {"value": {"dtype": "float32", "shape": [3, 2], "data": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<2x3xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %2 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.concatenate %3, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_reshape %arg0, %4 : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %6 = stablehlo.reshape %5 : (tensor<?x?xf32>) -> tensor<3x2xf32>
    return %6 : tensor<3x2xf32>
  }
}
