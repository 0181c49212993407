module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %v1 = sdy.sharding_constraint %arg0 <@mesh, [{?}, {}]> : tensor<4x4xf32>
    %v2 = "stablehlo.tanh"(%v1) {} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    %v3 = "stablehlo.add"(%arg0, %v2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>)
    return %v3 : tensor<4x4xf32>
  }
}
