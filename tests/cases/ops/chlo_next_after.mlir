// chlo_next_after: one step towards the second
// argument {"dtype": "float32", "shape": [4], "data": [1.0, 1.0, 0.0, "Infinity"]}
// argument {"dtype": "float32", "shape": [4], "data": [2.0, 0.0, -1.0, 0.0]}
// result {"value": {"dtype": "float32", "shape": [4], "data": [1.0000001, 0.99999994, -1e-45, 3.4028235e+38]}, "compare": {"exact": true}}
module @jit_chlo_next_after {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = chlo.next_after %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
