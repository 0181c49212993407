// tuple: nested tuples, through a call
// argument {"dtype": "int32", "shape": [2], "data": [1, 2]}
// argument {"dtype": "float32", "shape": [], "data": 3.0}
// result {"value": {"dtype": "float32", "shape": [], "data": 3.0}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2], "data": [1, 2]}, "compare": {"exact": true}}
module @jit_tuple {
  func.func public @main(%arg0: tensor<2xi32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<2xi32>) {
    %0 = stablehlo.tuple %arg1, %arg0 : tuple<tensor<f32>, tensor<2xi32>>
    %1 = stablehlo.tuple %arg0, %0 : tuple<tensor<2xi32>, tuple<tensor<f32>, tensor<2xi32>>>
    %2 = call @inner(%1) : (tuple<tensor<2xi32>, tuple<tensor<f32>, tensor<2xi32>>>) -> tuple<tensor<f32>, tensor<2xi32>>
    %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<f32>, tensor<2xi32>>) -> tensor<f32>
    %4 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<f32>, tensor<2xi32>>) -> tensor<2xi32>
    return %3, %4 : tensor<f32>, tensor<2xi32>
  }
  func.func private @inner(%arg0: tuple<tensor<2xi32>, tuple<tensor<f32>, tensor<2xi32>>>) -> tuple<tensor<f32>, tensor<2xi32>> {
    %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<2xi32>, tuple<tensor<f32>, tensor<2xi32>>>) -> tuple<tensor<f32>, tensor<2xi32>>
    return %0 : tuple<tensor<f32>, tensor<2xi32>>
  }
}
