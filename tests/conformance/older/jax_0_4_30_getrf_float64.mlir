module @jit__lambda_ attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x6x4xf64> {mhlo.layout_mode = "default"}) -> (tensor<3x6x4xf64> {jax.result_info = "[0]", mhlo.layout_mode = "default"}, tensor<3x4xi32> {jax.result_info = "[1]", mhlo.layout_mode = "default"}, tensor<3x6xi32> {jax.result_info = "[2]", mhlo.layout_mode = "default"}) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %c_0 = stablehlo.constant dense<6> : tensor<i64>
    %c_1 = stablehlo.constant dense<4> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.multiply %c_2, %c_3 : tensor<i32>
    %c_4 = stablehlo.constant dense<6> : tensor<i32>
    %c_5 = stablehlo.constant dense<4> : tensor<i32>
    %1:3 = stablehlo.custom_call @lapack_dgetrf(%0, %c_4, %c_5, %arg0) {api_version = 2 : i32, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 3, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<3x6x4xf64>) -> (tensor<3x6x4xf64>, tensor<3x4xi32>, tensor<3xi32>)
    %c_6 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %3 = stablehlo.subtract %1#1, %2 : tensor<3x4xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %5 = stablehlo.compare  GE, %1#2, %4,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x6x4xf64>
    %8 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x6x4xi1>
    %9 = stablehlo.select %8, %1#0, %7 : tensor<3x6x4xi1>, tensor<3x6x4xf64>
    %10 = stablehlo.iota dim = 1 : tensor<3x6xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i64>
    %c_9 = stablehlo.constant dense<0> : tensor<i64>
    %11:4 = stablehlo.while(%iterArg = %c_9, %iterArg_10 = %c_8, %iterArg_11 = %10, %iterArg_12 = %3) : tensor<i64>, tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>
     cond {
      %c_13 = stablehlo.constant dense<4> : tensor<i64>
      %12 = stablehlo.compare  LT, %iterArg, %c_13,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %12 : tensor<i1>
    } do {
      %12:3 = func.call @None(%iterArg_10, %iterArg_11, %iterArg_12) : (tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>) -> (tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>)
      %c_13 = stablehlo.constant dense<1> : tensor<i64>
      %13 = stablehlo.add %iterArg, %c_13 : tensor<i64>
      stablehlo.return %13, %12#0, %12#1, %12#2 : tensor<i64>, tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>
    }
    return %9, %3, %11#2 : tensor<3x6x4xf64>, tensor<3x4xi32>, tensor<3x6xi32>
  }
  func.func private @None(%arg0: tensor<i64>, %arg1: tensor<3x6xi32>, %arg2: tensor<3x4xi32>) -> (tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg0, %c : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.compare  LT, %c_0, %c_1,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<3> : tensor<i64>
    %2 = stablehlo.add %c_2, %c_3 : tensor<i64>
    %c_4 = stablehlo.constant dense<0> : tensor<i64>
    %3 = stablehlo.select %1, %2, %c_4 : tensor<i1>, tensor<i64>
    %c_5 = stablehlo.constant dense<0> : tensor<i64>
    %4 = stablehlo.compare  LT, %arg0, %c_5,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %5 = stablehlo.convert %arg0 : tensor<i64>
    %c_6 = stablehlo.constant dense<4> : tensor<i64>
    %6 = stablehlo.add %5, %c_6 : tensor<i64>
    %7 = stablehlo.select %4, %6, %arg0 : tensor<i1>, tensor<i64>
    %8 = stablehlo.dynamic_slice %arg2, %3, %7, sizes = [3, 1] : (tensor<3x4xi32>, tensor<i64>, tensor<i64>) -> tensor<3x1xi32>
    %9 = stablehlo.reshape %8 : (tensor<3x1xi32>) -> tensor<3xi32>
    %10 = stablehlo.iota dim = 0 : tensor<3xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i64>
    %c_8 = stablehlo.constant dense<0> : tensor<i64>
    %11 = stablehlo.compare  LT, %c_7, %c_8,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_9 = stablehlo.constant dense<0> : tensor<i64>
    %c_10 = stablehlo.constant dense<3> : tensor<i64>
    %12 = stablehlo.add %c_9, %c_10 : tensor<i64>
    %c_11 = stablehlo.constant dense<0> : tensor<i64>
    %13 = stablehlo.select %11, %12, %c_11 : tensor<i1>, tensor<i64>
    %c_12 = stablehlo.constant dense<0> : tensor<i64>
    %14 = stablehlo.compare  LT, %arg0, %c_12,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %15 = stablehlo.convert %arg0 : tensor<i64>
    %c_13 = stablehlo.constant dense<6> : tensor<i64>
    %16 = stablehlo.add %15, %c_13 : tensor<i64>
    %17 = stablehlo.select %14, %16, %arg0 : tensor<i1>, tensor<i64>
    %18 = stablehlo.dynamic_slice %arg1, %13, %17, sizes = [3, 1] : (tensor<3x6xi32>, tensor<i64>, tensor<i64>) -> tensor<3x1xi32>
    %19 = stablehlo.reshape %18 : (tensor<3x1xi32>) -> tensor<3xi32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %21 = stablehlo.compare  LT, %10, %20,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_15 = stablehlo.constant dense<3> : tensor<i32>
    %22 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %23 = stablehlo.add %10, %22 : tensor<3xi32>
    %24 = stablehlo.select %21, %23, %10 : tensor<3xi1>, tensor<3xi32>
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %26 = stablehlo.compare  LT, %9, %25,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_17 = stablehlo.constant dense<6> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %28 = stablehlo.add %9, %27 : tensor<3xi32>
    %29 = stablehlo.select %26, %28, %9 : tensor<3xi1>, tensor<3xi32>
    %30 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %32 = stablehlo.concatenate %30, %31, dim = 1 : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %33 = "stablehlo.gather"(%arg1, %32) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3x6xi32>, tensor<3x2xi32>) -> tensor<3xi32>
    %c_18 = stablehlo.constant dense<0> : tensor<i64>
    %34 = stablehlo.compare  LT, %arg0, %c_18,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_19 = stablehlo.constant dense<6> : tensor<i64>
    %35 = stablehlo.add %arg0, %c_19 : tensor<i64>
    %36 = stablehlo.select %34, %35, %arg0 : tensor<i1>, tensor<i64>
    %37 = stablehlo.convert %36 : (tensor<i64>) -> tensor<i32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %39 = "stablehlo.scatter"(%arg1, %38, %33) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3x6xi32>, tensor<1xi32>, tensor<3xi32>) -> tensor<3x6xi32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %40 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %41 = stablehlo.compare  LT, %10, %40,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_21 = stablehlo.constant dense<3> : tensor<i32>
    %42 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %43 = stablehlo.add %10, %42 : tensor<3xi32>
    %44 = stablehlo.select %41, %43, %10 : tensor<3xi1>, tensor<3xi32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %45 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %46 = stablehlo.compare  LT, %9, %45,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_23 = stablehlo.constant dense<6> : tensor<i32>
    %47 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %48 = stablehlo.add %9, %47 : tensor<3xi32>
    %49 = stablehlo.select %46, %48, %9 : tensor<3xi1>, tensor<3xi32>
    %50 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %51 = stablehlo.broadcast_in_dim %49, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %52 = stablehlo.concatenate %50, %51, dim = 1 : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %53 = "stablehlo.scatter"(%39, %52, %19) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3x6xi32>, tensor<3x2xi32>, tensor<3xi32>) -> tensor<3x6xi32>
    return %0, %53, %arg2 : tensor<i64>, tensor<3x6xi32>, tensor<3x4xi32>
  }
}
