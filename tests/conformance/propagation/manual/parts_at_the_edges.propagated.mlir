module {
  sdy.mesh @mesh = <["x"=8, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 8 : i64}, {name = "y", size = 2 : i64}]}}
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>} : tensor<8xf32>
    %1 = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %2:2 = sdy.manual_computation(%0, %1) in_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] out_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] manual_axes={"y"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
      %3 = stablehlo.negate %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      %4 = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      sdy.return %3, %4 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    return %2#0, %2#1 : tensor<8xf32>, tensor<4xf32>
  }
}
