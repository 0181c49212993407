module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x4x4xcomplex<f64>> {jax.result_info = ".U", mhlo.layout_mode = "default"}, tensor<2x4xf64> {jax.result_info = ".S", mhlo.layout_mode = "default"}, tensor<2x6x6xcomplex<f64>> {jax.result_info = ".Vh", mhlo.layout_mode = "default"}) {
    %0:3 = call @svd(%arg0) : (tensor<2x4x6xcomplex<f64>>) -> (tensor<2x4x4xcomplex<f64>>, tensor<2x4xf64>, tensor<2x6x6xcomplex<f64>>)
    return %0#0, %0#1, %0#2 : tensor<2x4x4xcomplex<f64>>, tensor<2x4xf64>, tensor<2x6x6xcomplex<f64>>
  }
  func.func private @svd(%arg0: tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x4x4xcomplex<f64>> {mhlo.layout_mode = "default"}, tensor<2x4xf64> {mhlo.layout_mode = "default"}, tensor<2x6x6xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<2> : tensor<i64>
    %c_0 = stablehlo.constant dense<4> : tensor<i64>
    %c_1 = stablehlo.constant dense<6> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %c_6 = stablehlo.constant dense<4> : tensor<i32>
    %c_7 = stablehlo.constant dense<6> : tensor<i32>
    %c_8 = stablehlo.constant dense<328> : tensor<i32>
    %1:8 = stablehlo.custom_call @lapack_zgesdd(%c_4, %c_5, %0, %c_6, %c_7, %c_8, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 6, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x4x6xcomplex<f64>>) -> (tensor<2x4x6xcomplex<f64>>, tensor<2x4xf64>, tensor<2x4x4xcomplex<f64>>, tensor<2x6x6xcomplex<f64>>, tensor<2xi32>, tensor<32xi32>, tensor<100xf64>, tensor<328xcomplex<f64>>)
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.compare  EQ, %1#4, %2,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xi1>) -> tensor<2x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x4xf64>
    %6 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x1xi1>) -> tensor<2x4xi1>
    %7 = stablehlo.select %6, %1#1, %5 : tensor<2x4xi1>, tensor<2x4xf64>
    %8 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xi1>) -> tensor<2x1x1xi1>
    %cst_10 = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %9 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<complex<f64>>) -> tensor<2x4x4xcomplex<f64>>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x1x1xi1>) -> tensor<2x4x4xi1>
    %11 = stablehlo.select %10, %1#2, %9 : tensor<2x4x4xi1>, tensor<2x4x4xcomplex<f64>>
    %12 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xi1>) -> tensor<2x1x1xi1>
    %cst_11 = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %13 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<complex<f64>>) -> tensor<2x6x6xcomplex<f64>>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<2x1x1xi1>) -> tensor<2x6x6xi1>
    %15 = stablehlo.select %14, %1#3, %13 : tensor<2x6x6xi1>, tensor<2x6x6xcomplex<f64>>
    return %11, %7, %15 : tensor<2x4x4xcomplex<f64>>, tensor<2x4xf64>, tensor<2x6x6xcomplex<f64>>
  }
}
