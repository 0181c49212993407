module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<4x4xcomplex<f32>> {jax.result_info = ".Q", mhlo.layout_mode = "default"}, tensor<4x6xcomplex<f32>> {jax.result_info = ".R", mhlo.layout_mode = "default"}) {
    %0:2 = call @qr(%arg0) : (tensor<4x6xcomplex<f32>>) -> (tensor<4x4xcomplex<f32>>, tensor<4x6xcomplex<f32>>)
    return %0#0, %0#1 : tensor<4x4xcomplex<f32>>, tensor<4x6xcomplex<f32>>
  }
  func.func private @qr(%arg0: tensor<4x6xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<4x4xcomplex<f32>> {mhlo.layout_mode = "default"}, tensor<4x6xcomplex<f32>> {mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<4> : tensor<i64>
    %c_0 = stablehlo.constant dense<6> : tensor<i64>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    %c_3 = stablehlo.constant dense<6> : tensor<i32>
    %c_4 = stablehlo.constant dense<192> : tensor<i32>
    %0:4 = stablehlo.custom_call @lapack_cgeqrf(%c_1, %c_2, %c_3, %c_4, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 4, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x6xcomplex<f32>>) -> (tensor<4x6xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<i32>, tensor<192xcomplex<f32>>)
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare  EQ, %0#2, %1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<4x6xcomplex<f32>>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<4x6xi1>
    %6 = stablehlo.select %5, %0#0, %4 : tensor<4x6xi1>, tensor<4x6xcomplex<f32>>
    %7 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst_6 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %8 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<1xi1>) -> tensor<4xi1>
    %10 = stablehlo.select %9, %0#1, %8 : tensor<4xi1>, tensor<4xcomplex<f32>>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %12 = "stablehlo.gather"(%6, %11) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = true, slice_sizes = array<i64: 4, 4>}> : (tensor<4x6xcomplex<f32>>, tensor<1xi32>) -> tensor<4x4xcomplex<f32>>
    %c_8 = stablehlo.constant dense<4> : tensor<i64>
    %c_9 = stablehlo.constant dense<4> : tensor<i64>
    %c_10 = stablehlo.constant dense<4> : tensor<i64>
    %c_11 = stablehlo.constant dense<1> : tensor<i32>
    %c_12 = stablehlo.constant dense<4> : tensor<i32>
    %c_13 = stablehlo.constant dense<4> : tensor<i32>
    %c_14 = stablehlo.constant dense<4> : tensor<i32>
    %c_15 = stablehlo.constant dense<128> : tensor<i32>
    %13:3 = stablehlo.custom_call @lapack_cungqr(%c_11, %c_12, %c_13, %c_14, %c_15, %12, %10) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 5, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> (tensor<4x4xcomplex<f32>>, tensor<i32>, tensor<128xcomplex<f32>>)
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i32>) -> tensor<i32>
    %15 = stablehlo.compare  EQ, %13#1, %14,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst_17 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %17 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<complex<f32>>) -> tensor<4x4xcomplex<f32>>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<4x4xi1>
    %19 = stablehlo.select %18, %13#0, %17 : tensor<4x4xi1>, tensor<4x4xcomplex<f32>>
    %20 = call @triu(%6) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
    return %19, %20 : tensor<4x4xcomplex<f32>>, tensor<4x6xcomplex<f32>>
  }
  func.func private @triu(%arg0: tensor<4x6xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<4x6xcomplex<f32>> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4x6xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.add %0, %1 : tensor<4x6xi32>
    %3 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %4 = stablehlo.compare  GE, %2, %3,  SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
    %cst = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<4x6xcomplex<f32>>
    %6 = stablehlo.select %4, %5, %arg0 : tensor<4x6xi1>, tensor<4x6xcomplex<f32>>
    return %6 : tensor<4x6xcomplex<f32>>
  }
}
