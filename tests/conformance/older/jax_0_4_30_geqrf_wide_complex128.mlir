module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x4x4xcomplex<f64>> {jax.result_info = ".Q", mhlo.layout_mode = "default"}, tensor<2x4x6xcomplex<f64>> {jax.result_info = ".R", mhlo.layout_mode = "default"}) {
    %0:2 = call @qr(%arg0) : (tensor<2x4x6xcomplex<f64>>) -> (tensor<2x4x4xcomplex<f64>>, tensor<2x4x6xcomplex<f64>>)
    return %0#0, %0#1 : tensor<2x4x4xcomplex<f64>>, tensor<2x4x6xcomplex<f64>>
  }
  func.func private @qr(%arg0: tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x4x4xcomplex<f64>> {mhlo.layout_mode = "default"}, tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<2> : tensor<i64>
    %c_0 = stablehlo.constant dense<4> : tensor<i64>
    %c_1 = stablehlo.constant dense<6> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<4> : tensor<i32>
    %c_5 = stablehlo.constant dense<6> : tensor<i32>
    %c_6 = stablehlo.constant dense<192> : tensor<i32>
    %1:4 = stablehlo.custom_call @lapack_zgeqrf(%0, %c_4, %c_5, %c_6, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 4, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x4x6xcomplex<f64>>) -> (tensor<2x4x6xcomplex<f64>>, tensor<2x4xcomplex<f64>>, tensor<2xi32>, tensor<192xcomplex<f64>>)
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.compare  EQ, %1#2, %2,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xi1>) -> tensor<2x1x1xi1>
    %cst = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f64>>) -> tensor<2x4x6xcomplex<f64>>
    %6 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<2x1x1xi1>) -> tensor<2x4x6xi1>
    %7 = stablehlo.select %6, %1#0, %5 : tensor<2x4x6xi1>, tensor<2x4x6xcomplex<f64>>
    %8 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xi1>) -> tensor<2x1xi1>
    %cst_8 = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %9 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<complex<f64>>) -> tensor<2x4xcomplex<f64>>
    %10 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<2x1xi1>) -> tensor<2x4xi1>
    %11 = stablehlo.select %10, %1#1, %9 : tensor<2x4xi1>, tensor<2x4xcomplex<f64>>
    %12 = stablehlo.slice %7 [0:2, 0:4, 0:4] : (tensor<2x4x6xcomplex<f64>>) -> tensor<2x4x4xcomplex<f64>>
    %c_9 = stablehlo.constant dense<2> : tensor<i64>
    %c_10 = stablehlo.constant dense<4> : tensor<i64>
    %c_11 = stablehlo.constant dense<4> : tensor<i64>
    %c_12 = stablehlo.constant dense<2> : tensor<i64>
    %c_13 = stablehlo.constant dense<4> : tensor<i64>
    %c_14 = stablehlo.constant dense<1> : tensor<i32>
    %c_15 = stablehlo.constant dense<2> : tensor<i32>
    %13 = stablehlo.multiply %c_14, %c_15 : tensor<i32>
    %c_16 = stablehlo.constant dense<4> : tensor<i32>
    %c_17 = stablehlo.constant dense<4> : tensor<i32>
    %c_18 = stablehlo.constant dense<4> : tensor<i32>
    %c_19 = stablehlo.constant dense<128> : tensor<i32>
    %14:3 = stablehlo.custom_call @lapack_zungqr(%13, %c_16, %c_17, %c_18, %c_19, %12, %11) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 5, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x4x4xcomplex<f64>>, tensor<2x4xcomplex<f64>>) -> (tensor<2x4x4xcomplex<f64>>, tensor<2xi32>, tensor<128xcomplex<f64>>)
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %16 = stablehlo.compare  EQ, %14#1, %15,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<2xi1>) -> tensor<2x1x1xi1>
    %cst_21 = stablehlo.constant dense<(0x7FF8000000000000,0x7FF8000000000000)> : tensor<complex<f64>>
    %18 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<complex<f64>>) -> tensor<2x4x4xcomplex<f64>>
    %19 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<2x1x1xi1>) -> tensor<2x4x4xi1>
    %20 = stablehlo.select %19, %14#0, %18 : tensor<2x4x4xi1>, tensor<2x4x4xcomplex<f64>>
    %21 = call @triu(%7) : (tensor<2x4x6xcomplex<f64>>) -> tensor<2x4x6xcomplex<f64>>
    return %20, %21 : tensor<2x4x4xcomplex<f64>>, tensor<2x4x6xcomplex<f64>>
  }
  func.func private @triu(%arg0: tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) -> (tensor<2x4x6xcomplex<f64>> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4x6xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.add %0, %1 : tensor<4x6xi32>
    %3 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %4 = stablehlo.compare  GE, %2, %3,  SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<4x6xi1>) -> tensor<2x4x6xi1>
    %cst = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f64>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f64>>) -> tensor<2x4x6xcomplex<f64>>
    %7 = stablehlo.select %5, %6, %arg0 : tensor<2x4x6xi1>, tensor<2x4x6xcomplex<f64>>
    return %7 : tensor<2x4x6xcomplex<f64>>
  }
}
