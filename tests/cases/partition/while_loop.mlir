// A loop carries a sharded value; its counter is replicated.
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<8xf32>
  cond {
    %end = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.multiply %v, %v : tensor<8xf32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
// ---- the device's program
"builtin.module"() <{sym_name = "device_program"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], function_type = (tensor<8xf32>) -> tensor<8xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    %0 = "sdy.manual_computation"(%arg0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
    ^bb0(%arg1: tensor<2xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %2:2 = "stablehlo.while"(%1, %arg1) ({
      ^bb0(%arg2: tensor<i32>, %arg3: tensor<2xf32>):
        %3 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %4 = "stablehlo.compare"(%arg2, %3) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%4) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg4: tensor<i32>, %arg5: tensor<2xf32>):
        %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %6 = "stablehlo.add"(%arg4, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %7 = "stablehlo.multiply"(%arg5, %arg5) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        "stablehlo.return"(%6, %7) : (tensor<i32>, tensor<2xf32>) -> ()
      }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      "sdy.return"(%2#1) : (tensor<2xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
