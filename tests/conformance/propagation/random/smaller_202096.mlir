module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %v7 = "func.call"(%arg1, %arg1) {callee = @f1} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    %v8 = "stablehlo.tanh"(%v7) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    return %v8 : tensor<4xf32>
  }
  func.func private @f1(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %v5 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%v1a0: tensor<4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v3:2 = "stablehlo.optimization_barrier"(%v2, %v2) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %v4 = "stablehlo.reverse"(%v3#1) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v4 : tensor<4xf32>
    } : (tensor<4xf32>) -> (tensor<4xf32>)
    %v6 = "stablehlo.tanh"(%arg1) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    return %v6 : tensor<4xf32>
  }
}
