"builtin.module"() <{sym_name = "jit_dyn_fun"}> ({
  "vhlo.func_v1"() <{arg_attrs = #vhlo.array_v1<[]>, function_type = #vhlo.type_v1<!vhlo.func_v1<(()) -> !vhlo.tensor_v1<2x2x!vhlo.f16_v1>>>, res_attrs = #vhlo.array_v1<[#vhlo.dict_v1<{#vhlo.string_v1<"jax.result_info"> = #vhlo.string_v1<"result">}>]>, sym_name = #vhlo.string_v1<"main">, sym_visibility = #vhlo.string_v1<"public">}> ({
    %0 = "vhlo.constant_v1"() <{value = #vhlo.tensor_v1<dense<0.000000e+00> : tensor<2x2xf16>>}> : () -> !vhlo.tensor_v1<2x2x!vhlo.f16_v1>
    %1 = "vhlo.sign_v1"(%0) : (!vhlo.tensor_v1<2x2x!vhlo.f16_v1>) -> !vhlo.tensor_v1<2x2x!vhlo.f16_v1>
    "vhlo.return_v1"(%1) : (!vhlo.tensor_v1<2x2x!vhlo.f16_v1>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
