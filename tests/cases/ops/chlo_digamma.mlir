// chlo_digamma: psi
// argument {"dtype": "float32", "shape": [6], "data": [0.5, 1.0, 2.0, 10.0, 100.0, 3.5]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-1.96351, -0.5772157, 0.42278433, 2.2517526, 4.600162, 1.1031567]}, "compare": {"ulp": 8}}
module @jit_chlo_digamma {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.digamma %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
