// chlo_cosh: even
// argument {"dtype": "float32", "shape": [6], "data": [-1.0, 0.0, 1.0, 5.0, -20.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.5430807, 1.0, 1.5430807, 74.209946, 242582600.0, "Infinity"]}, "compare": {"ulp": 4}}
module @jit_chlo_cosh {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.cosh %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
