// chlo_bessel_i1e: odd, exponentially scaled
// argument {"dtype": "float32", "shape": [6], "data": [-10.0, -0.5, 0.0, 0.5, 1.0, 30.0]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [-0.121262684, -0.1564208, 0.0, 0.1564208, 0.20791042, 0.07191633]}, "compare": {"ulp": 8}}
module @jit_chlo_bessel_i1e {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = chlo.bessel_i1e %arg0 : tensor<6xf32> -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
