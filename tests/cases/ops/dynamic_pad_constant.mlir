// dynamic_pad_constant: amounts that are written: the same as pad
// argument {"dtype": "int32", "shape": [1, 2], "data": [[1, 2]]}
// argument {"dtype": "int32", "shape": [], "data": 0}
// result {"value": {"dtype": "int32", "shape": [2, 4], "data": [[0, 0, 0, 0], [0, 1, 2, 0]]}, "compare": {"exact": true}}
module @jit_dynamic {
  func.func public @main(%arg0: tensor<1x2xi32>, %arg1: tensor<i32>) -> tensor<2x4xi32> {
    %low = stablehlo.constant dense<[1, 1]> : tensor<2xi64>
    %high = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
    %none = stablehlo.constant dense<0> : tensor<2xi64>
    %0 = stablehlo.dynamic_pad %arg0, %arg1, %low, %high, %none : (tensor<1x2xi32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x4xi32>
    return %0 : tensor<2x4xi32>
  }
}
