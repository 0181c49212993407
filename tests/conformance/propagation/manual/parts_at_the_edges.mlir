module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
    %0 = stablehlo.tanh %arg0 : tensor<8xf32>
    %1 = stablehlo.tanh %arg1 : tensor<4xf32>
    %2:2 = sdy.manual_computation(%0, %1) in_shardings=[<@mesh, [{"y", "x"}]>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"y", "x"}]>, <@mesh, [{"x"}]>] manual_axes={"y"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
      %3 = stablehlo.negate %arg2 : tensor<4xf32>
      %4 = stablehlo.negate %arg3 : tensor<4xf32>
      sdy.return %3, %4 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    return %2#0, %2#1 : tensor<8xf32>, tensor<4xf32>
  }
}
