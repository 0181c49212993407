module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}, %arg1: tensor<2x2x5xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x2x5xcomplex<f64>> {jax.result_info = "", mhlo.layout_mode = "default"}) {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = false, lower = false, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<2x5x5xcomplex<f64>>, tensor<2x2x5xcomplex<f64>>) -> tensor<2x2x5xcomplex<f64>>
    return %0 : tensor<2x2x5xcomplex<f64>>
  }
}
