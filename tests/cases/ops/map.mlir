// map: a region for each element, over more than one unit of work
// result {"value": {"dtype": "int32", "shape": [1], "data": [399960001]}, "compare": {"exact": true}}
module @jit_map {
  func.func public @main() -> tensor<1xi32> {
    %0 = stablehlo.iota dim = 0 : tensor<20000xi32>
    %1 = "stablehlo.map"(%0, %0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3 = stablehlo.multiply %arg0, %arg1 : tensor<i32>
      %4 = stablehlo.add %3, %c : tensor<i32>
      stablehlo.return %4 : tensor<i32>
    }) : (tensor<20000xi32>, tensor<20000xi32>) -> tensor<20000xi32>
    %2 = stablehlo.slice %1 [19999:20000] : (tensor<20000xi32>) -> tensor<1xi32>
    return %2 : tensor<1xi32>
  }
}
