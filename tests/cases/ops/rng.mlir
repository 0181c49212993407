// rng: numbers lie in their range and are not all alike; a range of one number and a deviation of nothing leave no choice
// result {"value": {"dtype": "int32", "shape": [3], "data": [7, 7, 7]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[2.5, 2.5], [2.5, 2.5]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "bool", "shape": [], "data": true}, "compare": {"exact": true}}
// result {"value": {"dtype": "bool", "shape": [], "data": false}, "compare": {"exact": true}}
module @jit_rng {
  func.func public @main() -> (tensor<3xi32>, tensor<2x2xf32>, tensor<i1>, tensor<i1>) {
    %c = stablehlo.constant dense<7> : tensor<i32>
    %c_0 = stablehlo.constant dense<8> : tensor<i32>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi64>
    %0 = stablehlo.rng %c, %c_0, %c_1, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<3xi32>
    %cst = stablehlo.constant dense<2.500000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_3 = stablehlo.constant dense<2> : tensor<2xi64>
    %1 = stablehlo.rng %cst, %cst_2, %c_3, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x2xf32>
    %c_4 = stablehlo.constant dense<512> : tensor<1xi64>
    %2 = stablehlo.rng %cst_2, %cst, %c_4, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<512xf32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<512xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<512xf32>
    %5 = stablehlo.compare GE, %2, %3, FLOAT : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
    %6 = stablehlo.compare LE, %2, %4, FLOAT : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
    %7 = stablehlo.and %5, %6 : tensor<512xi1>
    %true = stablehlo.constant dense<true> : tensor<i1>
    %8 = stablehlo.reduce(%7 init: %true) applies stablehlo.and across dimensions = [0] : (tensor<512xi1>, tensor<i1>) -> tensor<i1>
    %9 = stablehlo.slice %2 [0:1] : (tensor<512xf32>) -> tensor<1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<1xf32>) -> tensor<512xf32>
    %11 = stablehlo.compare EQ, %2, %10, FLOAT : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
    %12 = stablehlo.reduce(%11 init: %true) applies stablehlo.and across dimensions = [0] : (tensor<512xi1>, tensor<i1>) -> tensor<i1>
    return %0, %1, %8, %12 : tensor<3xi32>, tensor<2x2xf32>, tensor<i1>, tensor<i1>
  }
}
