// chlo_lgamma: zero at one and two
// argument {"dtype": "float32", "shape": [6], "data": [0.5, 1.0, 2.0, 10.0, 100.0, -0.5]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [0.5723649, 0.0, 0.0, 12.801827, 359.13422, 1.2655121]}, "compare": {"ulp": 8}}
module @jit_chlo_lgamma {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.lgamma %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
