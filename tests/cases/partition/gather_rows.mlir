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
      %1 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %2 = "stablehlo.convert"(%1) : (tensor<ui32>) -> tensor<i64>
      %3 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1xi64>
      %4 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
      %5 = "stablehlo.multiply"(%2, %4) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
      %7 = "stablehlo.add"(%3, %6) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
      %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %9 = "stablehlo.constant"() <{value = dense<15> : tensor<i32>}> : () -> tensor<i32>
      %10 = "stablehlo.clamp"(%8, %arg3, %9) : (tensor<i32>, tensor<5x1xi32>, tensor<i32>) -> tensor<5x1xi32>
      %11 = "stablehlo.convert"(%10) : (tensor<5x1xi32>) -> tensor<5x1xi64>
      %12 = "stablehlo.reshape"(%7) : (tensor<1xi64>) -> tensor<i64>
      %13 = "stablehlo.constant"() <{value = dense<4> : tensor<i64>}> : () -> tensor<i64>
      %14 = "stablehlo.multiply"(%12, %13) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %15 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<5x1xi64>
      %16 = "stablehlo.subtract"(%11, %15) : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi64>
      %17 = "stablehlo.constant"() <{value = dense<0> : tensor<5x1xi64>}> : () -> tensor<5x1xi64>
      %18 = "stablehlo.compare"(%16, %17) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi1>
      %19 = "stablehlo.constant"() <{value = dense<4> : tensor<5x1xi64>}> : () -> tensor<5x1xi64>
      %20 = "stablehlo.compare"(%16, %19) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x1xi64>, tensor<5x1xi64>) -> tensor<5x1xi1>
      %21 = "stablehlo.and"(%18, %20) : (tensor<5x1xi1>, tensor<5x1xi1>) -> tensor<5x1xi1>
      %22 = "stablehlo.reshape"(%21) : (tensor<5x1xi1>) -> tensor<5xi1>
      %23 = "stablehlo.gather"(%arg2, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}> : (tensor<4x3xf32>, tensor<5x1xi64>) -> tensor<5x3xf32>
      %24 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi1>) -> tensor<5x3xi1>
      %25 = "stablehlo.constant"() <{value = dense<"0x00000000"> : tensor<5x3xf32>}> : () -> tensor<5x3xf32>
      %26 = "stablehlo.select"(%24, %23, %25) : (tensor<5x3xi1>, tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
      %27 = "stablehlo.bitcast_convert"(%26) : (tensor<5x3xf32>) -> tensor<5x3xui32>
      %28 = "stablehlo.all_reduce"(%27) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<ui32>, %arg5: tensor<ui32>):
        %29 = "stablehlo.or"(%arg4, %arg5) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
        "stablehlo.return"(%29) : (tensor<ui32>) -> ()
      }) : (tensor<5x3xui32>) -> tensor<5x3xui32>
      %30 = "stablehlo.bitcast_convert"(%28) : (tensor<5x3xui32>) -> tensor<5x3xf32>
      "sdy.return"(%30) : (tensor<5x3xf32>) -> ()
    }) : (tensor<16x3xf32>, tensor<5x1xi32>) -> tensor<5x3xf32>
    "func.return"(%0) : (tensor<5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
