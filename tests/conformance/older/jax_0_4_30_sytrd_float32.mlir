module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x5xf32> {mhlo.layout_mode = "default"}) -> (tensor<5x5xf32> {jax.result_info = "[0]", mhlo.layout_mode = "default"}, tensor<5xf32> {jax.result_info = "[1]", mhlo.layout_mode = "default"}, tensor<4xf32> {jax.result_info = "[2]", mhlo.layout_mode = "default"}, tensor<4xf32> {jax.result_info = "[3]", mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<5> : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<160> : tensor<i32>
    %0:6 = stablehlo.custom_call @lapack_ssytrd(%c, %c_0, %c_1, %c_2, %c_3, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 5, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<5x5xf32>) -> (tensor<5x5xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<160xf32>)
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare  EQ, %0#4, %c_4,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %3 = call @_where(%2, %0#0, %cst) : (tensor<1x1xi1>, tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare  EQ, %0#4, %c_5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst_6 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %6 = call @_where_0(%5, %0#1, %cst_6) : (tensor<1xi1>, tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.compare  EQ, %0#4, %c_7,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst_8 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %9 = call @_where_1(%8, %0#2, %cst_8) : (tensor<1xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.compare  EQ, %0#4, %c_9,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %cst_10 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %12 = call @_where_1(%11, %0#3, %cst_10) : (tensor<1xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %3, %6, %9, %12 : tensor<5x5xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func private @_where(%arg0: tensor<1x1xi1> {mhlo.layout_mode = "default"}, %arg1: tensor<5x5xf32> {mhlo.layout_mode = "default"}, %arg2: tensor<f32> {mhlo.layout_mode = "default"}) -> (tensor<5x5xf32> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1x1xi1>) -> tensor<i1>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<5x5xi1>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<5x5xi1>, tensor<5x5xf32>
    return %3 : tensor<5x5xf32>
  }
  func.func private @_where_0(%arg0: tensor<1xi1> {mhlo.layout_mode = "default"}, %arg1: tensor<5xf32> {mhlo.layout_mode = "default"}, %arg2: tensor<f32> {mhlo.layout_mode = "default"}) -> (tensor<5xf32> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1xi1>) -> tensor<i1>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<5xi1>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<5xi1>, tensor<5xf32>
    return %3 : tensor<5xf32>
  }
  func.func private @_where_1(%arg0: tensor<1xi1> {mhlo.layout_mode = "default"}, %arg1: tensor<4xf32> {mhlo.layout_mode = "default"}, %arg2: tensor<f32> {mhlo.layout_mode = "default"}) -> (tensor<4xf32> {mhlo.layout_mode = "default"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1xi1>) -> tensor<i1>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4xi1>, tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
