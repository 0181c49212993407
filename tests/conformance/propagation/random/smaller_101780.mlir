module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4xf32>) -> (tensor<2xf32>) {
    %v3 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x", "y", "z"} (%v1a0: tensor<4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v2 : tensor<4xf32>
    } : (tensor<4xf32>) -> (tensor<4xf32>)
    %v4 = sdy.sharding_constraint %arg0 <@mesh, [{}]> : tensor<4xf32>
    %v8 = sdy.manual_computation(%arg0, %v4) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%v5a0: tensor<2xf32>, %v5a1: tensor<2xf32>) {
    %v6 = "stablehlo.add"(%v5a1, %v5a1) {} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
    %v7 = "stablehlo.tanh"(%v6) {} : (tensor<2xf32>) -> (tensor<2xf32>)
    sdy.return %v7 : tensor<2xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<2xf32>)
    return %v8 : tensor<2xf32>
  }
}
