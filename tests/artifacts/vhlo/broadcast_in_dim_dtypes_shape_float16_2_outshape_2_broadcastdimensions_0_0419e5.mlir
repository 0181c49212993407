module @jit_dyn_fun attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  vhlo.func_v1 @main(%arg0: !vhlo.tensor_v1<2x!vhlo.f16_v1>) -> (!vhlo.tensor_v1<2x!vhlo.f16_v1>) {
    "vhlo.return_v1"(%arg0) : (!vhlo.tensor_v1<2x!vhlo.f16_v1>) -> ()
  } {arg_attrs = #vhlo.array_v1<[]>, res_attrs = #vhlo.array_v1<[#vhlo.dict_v1<{#vhlo.string_v1<"jax.result_info"> = #vhlo.string_v1<"result">}>]>, sym_visibility = #vhlo.string_v1<"public">}
}
