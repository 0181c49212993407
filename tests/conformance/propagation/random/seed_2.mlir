module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> (tensor<4x1xf32>) {
    %v1 = "stablehlo.reshape"(%arg0) {} : (tensor<4xf32>) -> (tensor<4x1xf32>)
    return %v1 : tensor<4x1xf32>
  }
}
