module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>}) -> (tensor<8x32xf32>, tensor<8x16xf32>) {
    %0:2 = call @twice(%arg0) : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    %1 = stablehlo.dot_general %0#0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %2 = stablehlo.negate %0#1 : tensor<8x16xf32>
    return %1, %2 : tensor<8x32xf32>, tensor<8x16xf32>
  }
  func.func private @twice(%arg0: tensor<8x16xf32>) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, tensor<8x16xf32>) {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    return %0, %0 : tensor<8x16xf32>, tensor<8x16xf32>
  }
}
