module {
  sdy.mesh @mesh = <["x"=8, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 8 : i64}, {name = "y", size = 2 : i64}]}}
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{"y", "x"}]> : tensor<8xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>} : tensor<8xf32>
    %2 = sdy.reshard %1 <@mesh, [{"y", "x":(1)4}]> : tensor<8xf32>
    %3 = sdy.reshard %arg1 <@mesh, [{"x"}]> : tensor<4xf32>
    %4 = stablehlo.tanh %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %5 = sdy.reshard %4 <@mesh, [{"x":(1)4}]> : tensor<4xf32>
    %6:2 = sdy.manual_computation(%2, %5) in_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] out_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] manual_axes={"y"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
      %9 = sdy.reshard %arg2 <@mesh, [{"x"}]> : tensor<4xf32>
      %10 = stablehlo.negate %9 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      %11 = sdy.reshard %10 <@mesh, [{"x":(1)4}]> : tensor<4xf32>
      %12 = sdy.reshard %arg3 <@mesh, [{"x"}]> : tensor<4xf32>
      %13 = stablehlo.negate %12 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      %14 = sdy.reshard %13 <@mesh, [{"x":(1)4}]> : tensor<4xf32>
      sdy.return %11, %14 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    %7 = sdy.reshard %6#0 <@mesh, [{"y"}]> : tensor<8xf32>
    %8 = sdy.reshard %6#1 <@mesh, [{}]> : tensor<4xf32>
    return %7, %8 : tensor<8xf32>, tensor<4xf32>
  }
}
