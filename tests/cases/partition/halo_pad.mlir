// A pad in front shifts the rows of a sharded dimension.
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<14xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %v: tensor<f32>) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.pad %a, %v, low = [1], high = [1], interior = [0] : (tensor<14xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, {}], function_type = (tensor<14xf32>, tensor<f32>) -> tensor<16xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<14xf32>, %arg1: tensor<f32>):
    %0 = "stablehlo.constant"() <{value = dense<"0x00000000"> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) <{edge_padding_high = array<i64: 2>, edge_padding_low = array<i64: 0>, interior_padding = array<i64: 0>}> : (tensor<14xf32>, tensor<f32>) -> tensor<16xf32>
    %2 = "sdy.manual_computation"(%1, %arg1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, []>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
    ^bb0(%arg2: tensor<4xf32>, %arg3: tensor<f32>):
      %3 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %4 = "stablehlo.convert"(%3) : (tensor<ui32>) -> tensor<i64>
      %5 = "stablehlo.slice"(%arg2) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1xf32>
      %6 = "stablehlo.collective_permute"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
      %7 = "stablehlo.slice"(%arg2) <{limit_indices = array<i64: 3>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<3xf32>
      %8 = "stablehlo.concatenate"(%6, %7) <{dimension = 0 : i64}> : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
      %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
      %10 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      %11 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi64>
      %12 = "stablehlo.constant"() <{value = dense<[1, 0, 0, 0]> : tensor<4xi64>}> : () -> tensor<4xi64>
      %13 = "stablehlo.dynamic_slice"(%12, %4) <{slice_sizes = array<i64: 1>}> : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
      %14 = "stablehlo.reshape"(%13) : (tensor<1xi64>) -> tensor<i64>
      %15 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<4xi64>
      %16 = "stablehlo.constant"() <{value = dense<[4, 4, 4, 3]> : tensor<4xi64>}> : () -> tensor<4xi64>
      %17 = "stablehlo.dynamic_slice"(%16, %4) <{slice_sizes = array<i64: 1>}> : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
      %18 = "stablehlo.reshape"(%17) : (tensor<1xi64>) -> tensor<i64>
      %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<4xi64>
      %20 = "stablehlo.compare"(%11, %19) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
      %21 = "stablehlo.compare"(%11, %15) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
      %22 = "stablehlo.and"(%21, %20) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
      %23 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xi1>) -> tensor<4xi1>
      %24 = "stablehlo.select"(%23, %8, %10) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "sdy.return"(%24) : (tensor<4xf32>) -> ()
    }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
    "func.return"(%2) : (tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
