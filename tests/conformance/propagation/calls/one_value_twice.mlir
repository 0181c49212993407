module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    %1 = call @both(%0, %0) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @both(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.negate %arg1 : tensor<8x16xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
}
