module @jit_eigvals attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x5xcomplex<f64>> {jax.result_info = "", mhlo.layout_mode = "default"}) {
    %0 = call @eigvals(%arg0) : (tensor<3x5x5xf64>) -> tensor<3x5xcomplex<f64>>
    return %0 : tensor<3x5xcomplex<f64>>
  }
  func.func private @eigvals(%arg0: tensor<3x5x5xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x5xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<5> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<5> : tensor<i32>
    %c_5 = stablehlo.constant dense<78> : tensor<ui8>
    %c_6 = stablehlo.constant dense<78> : tensor<ui8>
    %1:8 = stablehlo.custom_call @lapack_dgeev(%0, %c_4, %c_5, %c_6, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<3x5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5x5xcomplex<f64>>, tensor<3x5x5xcomplex<f64>>, tensor<3xi32>)
    %2 = stablehlo.complex %1#3, %1#4 : tensor<3x5xcomplex<f64>>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %4 = stablehlo.compare  EQ, %1#7, %3,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f64>>) -> tensor<3x5xcomplex<f64>>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %8 = stablehlo.select %7, %2, %6 : tensor<3x5xi1>, tensor<3x5xcomplex<f64>>
    return %8 : tensor<3x5xcomplex<f64>>
  }
}
