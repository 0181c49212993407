// chlo_scan: two inputs, two carried values, from the end
// argument {"dtype": "int32", "shape": [5], "data": [3, 1, 4, 1, 5]}
// result {"value": {"dtype": "int32", "shape": [5], "data": [5, 5, 5, 5, 5]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [5], "data": [4, 4, 4, 4, 4]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [], "data": 5}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [], "data": 4}, "compare": {"exact": true}}
module @jit_scan {
  func.func public @main(%arg0: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>, tensor<i32>, tensor<i32>) {
    %iota = stablehlo.iota dim = 0 : tensor<5xi32>
    %c = stablehlo.constant dense<-2147483648> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0:4 = chlo.scan(%arg0, %iota) inits(%c, %c_0) dimension=0 attributes {is_reverse = true} {
    ^bb0(%value: tensor<i32>, %index: tensor<i32>, %best: tensor<i32>, %best_index: tensor<i32>):
      %1 = stablehlo.maximum %best, %value : tensor<i32>
      %2 = stablehlo.compare GE, %best, %value : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.select %2, %best_index, %index : tensor<i1>, tensor<i32>
      stablehlo.return %1, %3, %1, %3 : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
    } : (tensor<5xi32>, tensor<5xi32>, tensor<i32>, tensor<i32>) -> (tensor<5xi32>, tensor<5xi32>, tensor<i32>, tensor<i32>)
    return %0#0, %0#1, %0#2, %0#3 : tensor<5xi32>, tensor<5xi32>, tensor<i32>, tensor<i32>
  }
}
