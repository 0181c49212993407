module @jit_cholesky attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x5x5xcomplex<f64>> {jax.result_info = "", mhlo.layout_mode = "default"}) {
    %0 = call @cholesky(%arg0) : (tensor<2x5x5xcomplex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    return %0 : tensor<2x5x5xcomplex<f64>>
  }
  func.func private @cholesky(%arg0: tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<2x5x5xcomplex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    %1 = stablehlo.real %0 : (tensor<2x5x5xcomplex<f64>>) -> tensor<2x5x5xf64>
    %2 = stablehlo.imag %0 : (tensor<2x5x5xcomplex<f64>>) -> tensor<2x5x5xf64>
    %3 = stablehlo.negate %2 : tensor<2x5x5xf64>
    %4 = stablehlo.complex %1, %3 : tensor<2x5x5xcomplex<f64>>
    %5 = stablehlo.add %arg0, %4 : tensor<2x5x5xcomplex<f64>>
    %cst = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f64>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    %7 = stablehlo.divide %5, %6 : tensor<2x5x5xcomplex<f64>>
    %c = stablehlo.constant dense<2> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<5> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %8 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<5> : tensor<i32>
    %9:2 = stablehlo.custom_call @lapack_zpotrf(%c_4, %8, %c_5, %7) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 3, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x5x5xcomplex<f64>>) -> (tensor<2x5x5xcomplex<f64>>, tensor<2xi32>)
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %11 = stablehlo.compare  EQ, %9#1, %10,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<2xi1>) -> tensor<2x1x1xi1>
    %cst_7 = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %13 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<complex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<2x1x1xi1>) -> tensor<2x5x5xi1>
    %15 = stablehlo.select %14, %9#0, %13 : tensor<2x5x5xi1>, tensor<2x5x5xcomplex<f64>>
    %16 = call @tril(%15) : (tensor<2x5x5xcomplex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    return %16 : tensor<2x5x5xcomplex<f64>>
  }
  func.func private @tril(%arg0: tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x5x5xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %2 = stablehlo.add %0, %1 : tensor<5x5xi32>
    %3 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %4 = stablehlo.compare  GE, %2, %3,  SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<5x5xi1>) -> tensor<2x5x5xi1>
    %cst = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f64>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f64>>) -> tensor<2x5x5xcomplex<f64>>
    %7 = stablehlo.select %5, %arg0, %6 : tensor<2x5x5xi1>, tensor<2x5x5xcomplex<f64>>
    return %7 : tensor<2x5x5xcomplex<f64>>
  }
}
