// chlo_sinh: odd
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, 0.0, 1.0, 5.0, -20.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.1752012, 0.0, 1.1752012, 74.20321, -242582600.0, "Infinity"]}, "compare": {"ulp": 4}}
module @jit_chlo_sinh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.sinh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
