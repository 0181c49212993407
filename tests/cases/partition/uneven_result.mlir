// Seven columns over two devices: padded on the way in, cut on the way out.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<2x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<2x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.add %a, %a : tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}], function_type = (tensor<2x7xf32>) -> tensor<2x7xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<"0x00000000"> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) <{edge_padding_high = array<i64: 0, 1>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x7xf32>, tensor<f32>) -> tensor<2x8xf32>
    %2 = "sdy.manual_computation"(%1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}> ({
    ^bb0(%arg1: tensor<2x4xf32>):
      %3 = "stablehlo.add"(%arg1, %arg1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      "sdy.return"(%3) : (tensor<2x4xf32>) -> ()
    }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %4 = "stablehlo.slice"(%2) <{limit_indices = array<i64: 2, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x8xf32>) -> tensor<2x7xf32>
    "func.return"(%4) : (tensor<2x7xf32>) -> ()
  }) : () -> ()
}) : () -> ()
