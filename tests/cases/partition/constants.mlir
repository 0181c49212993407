// A constant and an iota of a sharded sum: each device makes its own rows.
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %1 = stablehlo.iota dim = 0 : tensor<8xf32>
  %2 = stablehlo.add %a, %0 : tensor<8xf32>
  %3 = stablehlo.add %2, %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], function_type = (tensor<8xf32>) -> tensor<8xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    %0 = "sdy.manual_computation"(%arg0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
    ^bb0(%arg1: tensor<2xf32>):
      %1 = "stablehlo.composite"() <{decomposition = @constant, name = "meshd.constant"}> : () -> tensor<2xf32>
      %2 = "stablehlo.composite"() <{decomposition = @iota, name = "meshd.iota"}> : () -> tensor<2xf32>
      %3 = "stablehlo.add"(%arg1, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "sdy.return"(%4) : (tensor<2xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [], function_type = () -> tensor<2xf32>, res_attrs = [{}], sym_name = "constant", sym_visibility = "private"}> ({
    %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<i64>
    %2 = "stablehlo.constant"() <{value = dense<"0x0000803F0000004000004040000080400000A0400000C0400000E04000000041"> : tensor<8xf32>}> : () -> tensor<8xf32>
    %3 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %5 = "stablehlo.dynamic_slice"(%2, %4) <{slice_sizes = array<i64: 2>}> : (tensor<8xf32>, tensor<i64>) -> tensor<2xf32>
    "func.return"(%5) : (tensor<2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [], function_type = () -> tensor<2xf32>, res_attrs = [{}], sym_name = "iota", sym_visibility = "private"}> ({
    %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<i64>
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi64>
    %3 = "stablehlo.constant"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<2xi64>
    %6 = "stablehlo.add"(%2, %5) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    %7 = "stablehlo.convert"(%6) : (tensor<2xi64>) -> tensor<2xf32>
    "func.return"(%7) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
