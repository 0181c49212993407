// chlo_top_k_all: as many as there are: floats stand in total order, NaN first
// argument {"dtype": "float32", "shape": [7], "data": [1.0, "NaN", -0.0, 0.0, "Infinity", "-Infinity", 2.0]}
// result {"value": {"dtype": "float32", "shape": [7], "data": ["NaN", "Infinity", 2.0, 1.0, 0.0, -0.0, "-Infinity"]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [7], "data": [1, 4, 6, 0, 3, 2, 5]}, "compare": {"exact": true}}
module @jit_top_k {
  func.func public @main(%arg0: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xi32>) {
    %values, %indices = chlo.top_k(%arg0, k = 7) : tensor<7xf32> -> (tensor<7xf32>, tensor<7xi32>)
    return %values, %indices : tensor<7xf32>, tensor<7xi32>
  }
}
