// custom_call_mhlo: names of pointwise functions that exported programs have
// argument {"dtype": "float64", "shape": [3], "data": [0.5, -0.25, 0.0]}
// result {"value": {"dtype": "float64", "shape": [3], "data": [0.5235987755982989, -0.25268025514207865, 0.0]}, "compare": {"ulp": 4}}
// result {"value": {"dtype": "float64", "shape": [3], "data": [1.1276259652063807, 1.0314130998795732, 1.0]}, "compare": {"ulp": 4}}
// result {"value": {"dtype": "float64", "shape": [3], "data": [0.5493061443340548, -0.25541281188299536, 0.0]}, "compare": {"ulp": 4}}
module @jit_mhlo {
  func.func public @main(%arg0: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
    %0 = stablehlo.custom_call @mhlo.asin(%arg0) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<3xf64>) -> tensor<3xf64>
    %1 = stablehlo.custom_call @mhlo.cosh(%arg0) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<3xf64>) -> tensor<3xf64>
    %2 = stablehlo.custom_call @mhlo.atanh(%arg0) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<3xf64>) -> tensor<3xf64>
    return %0, %1, %2 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
  }
}
