module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<4x6xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg1: tensor<4x6xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg2: tensor<4x6xcomplex<f64>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg3: tensor<4x6xcomplex<f64>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<4x6xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<4x6xcomplex<f64>> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.atan2 %arg0, %arg1 : tensor<4x6xcomplex<f32>>
    %1 = stablehlo.atan2 %arg2, %arg3 : tensor<4x6xcomplex<f64>>
    return %0, %1 : tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f64>>
  }
}
