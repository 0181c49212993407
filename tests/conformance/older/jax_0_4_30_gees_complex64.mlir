module @jit_schur_without_phases attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x5xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<5xcomplex<f32>> {jax.result_info = "[0]", mhlo.layout_mode = "default"}, tensor<5x5xf32> {jax.result_info = "[1]", mhlo.layout_mode = "default"}, tensor<5x5xcomplex<f32>> {jax.result_info = "[2]", mhlo.layout_mode = "default"}) {
    %0:2 = call @_schur(%arg0) : (tensor<5x5xcomplex<f32>>) -> (tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>)
    %1 = call @diagonal(%0#0) : (tensor<5x5xcomplex<f32>>) -> tensor<5xcomplex<f32>>
    %2 = stablehlo.abs %0#0 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %3 = stablehlo.dot_general %0#1, %0#0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %4 = stablehlo.real %0#1 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %5 = stablehlo.imag %0#1 : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xf32>
    %6 = stablehlo.negate %5 : tensor<5x5xf32>
    %7 = stablehlo.complex %4, %6 : tensor<5x5xcomplex<f32>>
    %8 = stablehlo.transpose %7, dims = [1, 0] : (tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    %9 = stablehlo.dot_general %3, %8, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>) -> tensor<5x5xcomplex<f32>>
    return %1, %2, %9 : tensor<5xcomplex<f32>>, tensor<5x5xf32>, tensor<5x5xcomplex<f32>>
  }
  func.func private @_schur(%arg0: tensor<5x5xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<5x5xcomplex<f32>> {mhlo.layout_mode = "default"}, tensor<5x5xcomplex<f32>> {mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<5> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<5> : tensor<i32>
    %c_3 = stablehlo.constant dense<86> : tensor<ui8>
    %c_4 = stablehlo.constant dense<78> : tensor<ui8>
    %0:6 = stablehlo.custom_call @lapack_cgees(%c_1, %c_2, %c_3, %c_4, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 4, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>]} : (tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<5x5xcomplex<f32>>) -> (tensor<5x5xcomplex<f32>>, tensor<5xf32>, tensor<5xcomplex<f32>>, tensor<5x5xcomplex<f32>>, tensor<i32>, tensor<i32>)
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare  EQ, %0#5, %1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<5x5xcomplex<f32>>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %6 = stablehlo.select %5, %0#0, %4 : tensor<5x5xi1>, tensor<5x5xcomplex<f32>>
    %7 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst_6 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %8 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<complex<f32>>) -> tensor<5x5xcomplex<f32>>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %10 = stablehlo.select %9, %0#3, %8 : tensor<5x5xi1>, tensor<5x5xcomplex<f32>>
    return %6, %10 : tensor<5x5xcomplex<f32>>, tensor<5x5xcomplex<f32>>
  }
  func.func private @diagonal(%arg0: tensor<5x5xcomplex<f32>> {mhlo.layout_mode = "default"}) -> (tensor<5xcomplex<f32>> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.iota dim = 0 : tensor<5xi64>
    %1 = stablehlo.iota dim = 0 : tensor<5xi64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %3 = stablehlo.compare  LT, %0, %2,  SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %4 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %5 = stablehlo.add %0, %4 : tensor<5xi64>
    %6 = stablehlo.select %3, %5, %0 : tensor<5xi1>, tensor<5xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %7 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %8 = stablehlo.compare  LT, %1, %7,  SIGNED : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi1>
    %c_2 = stablehlo.constant dense<5> : tensor<i64>
    %9 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<5xi64>
    %10 = stablehlo.add %1, %9 : tensor<5xi64>
    %11 = stablehlo.select %8, %10, %1 : tensor<5xi1>, tensor<5xi64>
    %12 = stablehlo.convert %6 : (tensor<5xi64>) -> tensor<5xi32>
    %13 = stablehlo.convert %11 : (tensor<5xi64>) -> tensor<5xi32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %15 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %16 = stablehlo.concatenate %14, %15, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    %17 = "stablehlo.gather"(%arg0, %16) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<5x5xcomplex<f32>>, tensor<5x2xi32>) -> tensor<5xcomplex<f32>>
    return %17 : tensor<5xcomplex<f32>>
  }
}
