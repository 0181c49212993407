// custom_call_top_k_smallest: @mhlo.topk of the smallest elements
// argument {"dtype": "int32", "shape": [2, 4], "data": [[3, 1, 3, 2], [-1, 5, 5, 0]]}
// result {"value": {"dtype": "int32", "shape": [2, 2], "data": [[1, 2], [-1, 0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2, 2], "data": [[1, 3], [0, 3]]}, "compare": {"exact": true}}
module @jit_top_k {
  func.func public @main(%arg0: tensor<2x4xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>) {
    %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 2 : i64, largest = false}, mhlo.version = 1 : i64} : (tensor<2x4xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>)
    return %0#0, %0#1 : tensor<2x2xi32>, tensor<2x2xi32>
  }
}
