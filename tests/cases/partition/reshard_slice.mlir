// A replicated argument leaves sharded: every device keeps its rows, and nothing is sent.
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
  return %a : tensor<8x4xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}], function_type = (tensor<8x4xf32>) -> tensor<8x4xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x4xf32>):
    %0 = "sdy.manual_computation"(%arg0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>, manual_axes = #sdy<manual_axes{"x", "y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}, {}]>]>}> ({
    ^bb0(%arg1: tensor<8x4xf32>):
      %1 = "stablehlo.composite"(%arg1) <{decomposition = @reshard, name = "meshd.reshard"}> : (tensor<8x4xf32>) -> tensor<2x4xf32>
      "sdy.return"(%1) : (tensor<2x4xf32>) -> ()
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    "func.return"(%0) : (tensor<8x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<8x4xf32>) -> tensor<2x4xf32>, res_attrs = [{}], sym_name = "reshard", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x4xf32>):
    %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<i64>
    %2 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %3 = "stablehlo.remainder"(%1, %2) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %4 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %5 = "stablehlo.divide"(%1, %4) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %6 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %7 = "stablehlo.multiply"(%3, %6) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %8 = "stablehlo.add"(%7, %5) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %9 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %10 = "stablehlo.multiply"(%8, %9) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %11 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %12 = "stablehlo.dynamic_slice"(%arg0, %10, %11) <{slice_sizes = array<i64: 2, 4>}> : (tensor<8x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4xf32>
    "func.return"(%12) : (tensor<2x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
