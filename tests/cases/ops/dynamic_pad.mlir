// dynamic_pad: amounts that are arguments: negative ones take away, inner ones go between
// argument {"dtype": "int32", "shape": [3], "data": [1, 2, 3]}
// argument {"dtype": "int32", "shape": [], "data": 9}
// argument {"dtype": "int32", "shape": [1], "data": [-1]}
// argument {"dtype": "int32", "shape": [1], "data": [2]}
// argument {"dtype": "int32", "shape": [1], "data": [1]}
// result {"value": {"dtype": "int32", "shape": [6], "data": [9, 2, 9, 3, 9, 9]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<3xi32>, %arg1: tensor<i32>, %arg2: tensor<1xi32>, %arg3: tensor<1xi32>, %arg4: tensor<1xi32>) -> tensor<6xi32> {
    %0 = stablehlo.dynamic_pad %arg0, %arg1, %arg2, %arg3, %arg4 : (tensor<3xi32>, tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xi32>
    return %0 : tensor<6xi32>
  }
}
