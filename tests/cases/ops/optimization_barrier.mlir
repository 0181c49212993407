// optimization_barrier: what goes in comes out
// argument {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}
// argument {"dtype": "int32", "shape": [], "data": 3}
// result {"value": {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [], "data": 3}, "compare": {"exact": true}}
module @jit_optimization_barrier {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<i32>) -> (tensor<2xf32>, tensor<i32>) {
    %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<2xf32>, tensor<i32>
    return %0#0, %0#1 : tensor<2xf32>, tensor<i32>
  }
}
