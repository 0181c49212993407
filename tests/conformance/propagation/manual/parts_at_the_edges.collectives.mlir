module {
  sdy.mesh @mesh = <["x"=8, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 8 : i64}, {name = "y", size = 2 : i64}]}}
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@mesh, [{"y", "x"}]> : tensor<8xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>} : tensor<8xf32>
    %2 = sdy.all_gather [{"x":(4)2}] %1 out_sharding=<@mesh, [{"y", "x":(1)4}]> : tensor<8xf32>
    %3 = sdy.all_slice [{"x"}] %arg1 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
    %4 = stablehlo.tanh %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %5 = sdy.all_gather [{"x":(4)2}] %4 out_sharding=<@mesh, [{"x":(1)4}]> : tensor<4xf32>
    %6:2 = sdy.manual_computation(%2, %5) in_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] out_shardings=[<@mesh, [{"y", "x":(1)4}]>, <@mesh, [{"x":(1)4}]>] manual_axes={"y"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
      %9 = sdy.all_slice [{"x":(4)2}] %arg2 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
      %10 = stablehlo.negate %9 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      %11 = sdy.all_gather [{"x":(4)2}] %10 out_sharding=<@mesh, [{"x":(1)4}]> : tensor<4xf32>
      %12 = sdy.all_slice [{"x":(4)2}] %arg3 out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>
      %13 = stablehlo.negate %12 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
      %14 = sdy.all_gather [{"x":(4)2}] %13 out_sharding=<@mesh, [{"x":(1)4}]> : tensor<4xf32>
      sdy.return %11, %14 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    %7 = sdy.all_gather [{"x":(1)4}] %6#0 out_sharding=<@mesh, [{"y"}]> : tensor<8xf32>
    %8 = sdy.all_gather [{"x":(1)4}] %6#1 out_sharding=<@mesh, [{}]> : tensor<4xf32>
    return %7, %8 : tensor<8xf32>, tensor<4xf32>
  }
}
