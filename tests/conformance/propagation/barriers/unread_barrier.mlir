module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x16xf32>, %arg1: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {?}]>}) -> tensor<8x4x4xf32> {
    %0 = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8x16xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<8x16xf32>) -> tensor<8x4x4xf32>
    %2 = stablehlo.add %1, %arg1 : tensor<8x4x4xf32>
    return %2 : tensor<8x4x4xf32>
  }
}
