// reduce_of_several: each accumulator with an op of its own, start values that are not its identity
// argument {"dtype": "int32", "shape": [4, 3], "data": [[1, 5, -2], [7, 0, 3], [4, 4, 4], [-9, 2, 8]]}
// argument {"dtype": "float32", "shape": [4, 3], "data": [[0.5, 2.5, -1.0], [3.5, 0.0, 1.5], [2.0, 2.0, 2.0], [-4.5, 1.0, 4.0]]}
// argument {"dtype": "int32", "shape": [], "data": 3}
// result {"value": {"dtype": "int32", "shape": [3], "data": [6, 14, 16]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [3], "data": [3.5, 2.5, 4.0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [4], "data": [-2, 0, 3, -9]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [4], "data": [-30, 0, 192, -432]}, "compare": {"exact": true}}
module @jit_f {
  func.func public @main(%arg0: tensor<4x3xi32>, %arg1: tensor<4x3xf32>, %arg2: tensor<i32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<4xi32>, tensor<4xi32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %cst) across dimensions = [0] : (tensor<4x3xi32>, tensor<4x3xf32>, tensor<i32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>)
     reducer(%arg3: tensor<i32>, %arg5: tensor<i32>) (%arg4: tensor<f32>, %arg6: tensor<f32>)  {
      %3 = stablehlo.add %arg3, %arg5 : tensor<i32>
      %4 = stablehlo.maximum %arg4, %arg6 : tensor<f32>
      stablehlo.return %3, %4 : tensor<i32>, tensor<f32>
    }
    %1 = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.minimum across dimensions = [1] : (tensor<4x3xi32>, tensor<i32>) -> tensor<4xi32>
    %2 = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.multiply across dimensions = [1] : (tensor<4x3xi32>, tensor<i32>) -> tensor<4xi32>
    return %0#0, %0#1, %1, %2 : tensor<3xi32>, tensor<3xf32>, tensor<4xi32>, tensor<4xi32>
  }
}
