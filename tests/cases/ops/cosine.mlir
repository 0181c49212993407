// cosine: in radians
// argument {"dtype": "float32", "shape": [6], "data": [0.0, 0.5, -1.0, 3.1415927, 10.0, "Infinity"]}
// result {"value": {"dtype": "float32", "shape": [6], "data": [1.0, 0.87758255, 0.5403023, -1.0, -0.8390715, "NaN"]}, "compare": {"ulp": 4}}
module @jit_cosine {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.cosine %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
