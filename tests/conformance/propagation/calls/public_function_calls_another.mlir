module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> tensor<8x16xf32> {
    %0 = call @outer(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = call @inner(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @inner(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
  func.func public @outer(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = call @inner(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.negate %0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
}
