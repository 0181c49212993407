// Rows of a table sharded over x: each device reads those that it has, and the bits of the parts are or-ed.
sdy.mesh @mesh = <["x"=4]>
func.func @main(%t: tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<5x1xi32>) -> tensor<5x3xf32> {
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}> : (tensor<16x3xf32>, tensor<5x1xi32>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, {}], function_type = (tensor<16x3xf32>, tensor<5x1xi32>) -> tensor<5x3xf32>, res_attrs = [{}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<16x3xf32>, %arg1: tensor<5x1xi32>):
    %0 = "sdy.manual_computation"(%arg0, %arg1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}> ({
    ^bb0(%arg2: tensor<4x3xf32>, %arg3: tensor<5x1xi32>):
      %1 = "stablehlo.composite"() <{decomposition = @iota, name = "meshd.iota"}> : () -> tensor<1xi64>
      %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %3 = "stablehlo.constant"() <{value = dense<15> : tensor<i32>}> : () -> tensor<i32>
      %4 = "stablehlo.clamp"(%2, %arg3, %3) : (tensor<i32>, tensor<5x1xi32>, tensor<i32>) -> tensor<5x1xi32>
      %5 = "stablehlo.convert"(%4) : (tensor<5x1xi32>) -> tensor<5x1xi64>
      %6 = "stablehlo.reshape"(%1) : (tensor<1xi64>) -> tensor<i64>
      %7 = "stablehlo.constant"() <{value = dense<4> : tensor<i64>}> : () -> tensor<i64>
      %8 = "stablehlo.multiply"(%6, %7) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x1xi64>
      %10 = "stablehlo.subtract"(%5, %9) : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi64>
      %11 = "stablehlo.constant"() <{value = dense<0> : tensor<5x1xi64>}> : () -> tensor<5x1xi64>
      %12 = "stablehlo.compare"(%10, %11) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi1>
      %13 = "stablehlo.constant"() <{value = dense<4> : tensor<5x1xi64>}> : () -> tensor<5x1xi64>
      %14 = "stablehlo.compare"(%10, %13) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi1>
      %15 = "stablehlo.and"(%12, %14) : (tensor<5x1xi1>, tensor<5x1xi1>) -> tensor<5x1xi1>
      %16 = "stablehlo.reshape"(%15) : (tensor<5x1xi1>) -> tensor<5xi1>
      %17 = "stablehlo.gather"(%arg2, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}> : (tensor<4x3xf32>, tensor<5x1xi64>) -> tensor<5x3xf32>
      %18 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi1>) -> tensor<5x3xi1>
      %19 = "stablehlo.constant"() <{value = dense<"0x00000000"> : tensor<5x3xf32>}> : () -> tensor<5x3xf32>
      %20 = "stablehlo.select"(%18, %17, %19) : (tensor<5x3xi1>, tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
      %21 = "stablehlo.composite"(%20) <{decomposition = @all_reduce, name = "meshd.all_reduce"}> : (tensor<5x3xf32>) -> tensor<5x3xf32>
      "sdy.return"(%21) : (tensor<5x3xf32>) -> ()
    }) : (tensor<16x3xf32>, tensor<5x1xi32>) -> tensor<5x3xf32>
    "func.return"(%0) : (tensor<5x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [], function_type = () -> tensor<1xi64>, res_attrs = [{}], sym_name = "iota", sym_visibility = "private"}> ({
    %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<i64>
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1xi64>
    %3 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
    %6 = "stablehlo.add"(%2, %5) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
    "func.return"(%6) : (tensor<1xi64>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<5x3xf32>) -> tensor<5x3xf32>, res_attrs = [{}], sym_name = "all_reduce", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<5x3xf32>):
    %0 = "stablehlo.bitcast_convert"(%arg0) : (tensor<5x3xf32>) -> tensor<5x3xui32>
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<ui32>, %arg2: tensor<ui32>):
      %2 = "stablehlo.or"(%arg1, %arg2) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      "stablehlo.return"(%2) : (tensor<ui32>) -> ()
    }) : (tensor<5x3xui32>) -> tensor<5x3xui32>
    %3 = "stablehlo.bitcast_convert"(%1) : (tensor<5x3xui32>) -> tensor<5x3xf32>
    "func.return"(%3) : (tensor<5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
