module @jit_cholesky attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x5x5xf64> {jax.result_info = "", mhlo.layout_mode = "default"}) {
    %0 = call @cholesky(%arg0) : (tensor<3x5x5xf64>) -> tensor<3x5x5xf64>
    return %0 : tensor<3x5x5xf64>
  }
  func.func private @cholesky(%arg0: tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x5x5xf64>) -> tensor<3x5x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5x5xf64>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %3 = stablehlo.divide %1, %2 : tensor<3x5x5xf64>
    %c = stablehlo.constant dense<3> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<5> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %4 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<5> : tensor<i32>
    %5:2 = stablehlo.custom_call @lapack_dpotrf(%c_4, %4, %c_5, %3) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 3, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<3x5x5xf64>) -> (tensor<3x5x5xf64>, tensor<3xi32>)
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %7 = stablehlo.compare  EQ, %5#1, %6,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_7 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %9 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x5xi1>
    %11 = stablehlo.select %10, %5#0, %9 : tensor<3x5x5xi1>, tensor<3x5x5xf64>
    %12 = call @tril(%11) : (tensor<3x5x5xf64>) -> tensor<3x5x5xf64>
    return %12 : tensor<3x5x5xf64>
  }
  func.func private @tril(%arg0: tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %2 = stablehlo.add %0, %1 : tensor<5x5xi32>
    %3 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %4 = stablehlo.compare  GE, %2, %3,  SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<5x5xi1>) -> tensor<3x5x5xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %7 = stablehlo.select %5, %arg0, %6 : tensor<3x5x5xi1>, tensor<3x5x5xf64>
    return %7 : tensor<3x5x5xf64>
  }
}
