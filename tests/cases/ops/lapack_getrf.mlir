// lapack_getrf: four matrices of complex numbers
// argument {"dtype": "complex64", "shape": [3, 5, 4], "base64": "Zzckv8ujNL7TBgBAZ99SvnQjQz+d1DM/TIKZv6sYBT/3m5g9fU+Ev+6hEz/RKaK9GlBBvvGIED010y4/WvmGvzw6iL2hCYU+vNAqPwmjW7+CIbg/Xdl4PzT4LL8vX0U+kQNQPlLmtj2nNu2+ok0Xv6dSAj616fK9/vWXvye2/78cTRS/9tGQv5nnSL4jxrk+ZBVmP3E6CMCilpI/VrtYP1xpqb8XgN+/r21Lv525QT92myU/fnJYv50H/7/2a0c/miTtvhMYBj5ePse9ArfEv97loD8b5J8/xnwwP9yJuD+EiKe+ucSGvfu1vL7BPoy+nRmAviq0I74DA8M/laN5vxYm275+now//3ubvvf6Cr+OhrQ+Cq1RvX9W9715FUu/4ARKvlRGIL/BmY6/f4yjv4rEPLym56A/FB3jviLJHb6tQ5U/pEZ3P88wJz9pT1o81MjFvG7EMb8FGys/SkOnvmIDrr5Naw+/FKyGP+JmAjzM7rC7+iLAvoxYFT9Xj5m+/TulvyN1sL8MgLE+dI1OvxMX2L8ouNM/1EICwPHVK79l5Ju+jOyGv6hhZr8Jtqw+df0nPn8htD8Yqg9AeB26v8/rVL/AhlW+xLofvzLOIb9pVVI+Fmnhvz1s/D4oJDw/"}
// result {"value": {"dtype": "complex64", "shape": [3, 5, 4], "base64": "HE0Uv/bRkL+Z50i+I8a5PmQVZj9xOgjAopaSP1a7WD8gArU+e5vFvrMB9z8U4tG+rg2iP06j5j8bKPe/faApP2R3Mj8vetg+0IHpPoIRBL2/cxbA+Gm3PjgGjT/1kh/AjJ8Kvr/A4T1MTCy+k1ecvoxiFT4qb2W9Olq+v5z4A8D45iG+gBkPvtFLwT5GoLK+WUOTvqxAiL7g4Zo9CcjyPlxpqb8XgN+/r21Lv525QT92myU/fnJYv50H/7/2a0c/1HCQPnuLzj04RlC/4J20vxj/jr7EFbc/WMtJPkwPMb7S+aM97XpRvlFvfj/HAuE+GTMSQHDsGT6e39U+kkuHP/AqkL4uyeq+7CsjP9Ehgb5rxJY+emTkvgKW278E77m/kMbpPcyWzr3Vjq8+MGhavbZK4b0DQ1q+GltPvuaePz/9O6W/I3WwvwyAsT50jU6/ExfYvyi40z/UQgLA8dUrvxOBBD8qEoc+hWelv1LaKT8as7w/Fht/P/rAR0AE1RG/cGHDPqbke75ebog+o7KkPg6uvT4cBmPAiPvWPhQ+ub6y1q0+ajiSPVSH6b4oy92+tKFNvQFuiD4vlDRAe4qEP5acS7+IGc893zs6vyxEDz5P8Lq+ElsqPbHyYD4a1Sq/"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
// result {"value": {"dtype": "int32", "shape": [3, 4], "base64": "BAAAAAQAAAAEAAAAAwAAAAAAAAAEAAAABAAAAAMAAAACAAAAAwAAAAQAAAADAAAA"}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [3, 5], "base64": "BAAAAAAAAAABAAAAAwAAAAIAAAAAAAAABAAAAAEAAAADAAAAAgAAAAIAAAADAAAABAAAAAEAAAAAAAAA"}, "compare": {"exact": true}}
module @jit_lu attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x4xcomplex<f32>>) -> (tensor<3x5x4xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x4xi32> {jax.result_info = "result[1]"}, tensor<3x5xi32> {jax.result_info = "result[2]"}) {
    %0:3 = stablehlo.custom_call @lapack_cgetrf_ffi(%arg0) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i]) {i=3, j=5, k=4, l=5, m=4, n=4}, custom>} : (tensor<3x5x4xcomplex<f32>>) -> (tensor<3x5x4xcomplex<f32>>, tensor<3x4xi32>, tensor<3xi32>)
    %c = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %2 = stablehlo.subtract %0#1, %1 : tensor<3x4xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %4 = stablehlo.compare GE, %0#2, %3, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<3x5x4xcomplex<f32>>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x4xi1>
    %8 = stablehlo.select %7, %0#0, %6 : tensor<3x5x4xi1>, tensor<3x5x4xcomplex<f32>>
    %9 = stablehlo.iota dim = 1 : tensor<3x5xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %10:4 = stablehlo.while(%iterArg = %2, %iterArg_3 = %c_2, %iterArg_4 = %c_1, %iterArg_5 = %9) : tensor<3x4xi32>, tensor<i64>, tensor<i64>, tensor<3x5xi32>
    cond {
      %c_6 = stablehlo.constant dense<4> : tensor<i64>
      %11 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %11:2 = func.call @closed_call(%iterArg, %iterArg_4, %iterArg_5) : (tensor<3x4xi32>, tensor<i64>, tensor<3x5xi32>) -> (tensor<i64>, tensor<3x5xi32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i64>
      %12 = stablehlo.add %iterArg_3, %c_6 : tensor<i64>
      stablehlo.return %iterArg, %12, %11#0, %11#1 : tensor<3x4xi32>, tensor<i64>, tensor<i64>, tensor<3x5xi32>
    }
    return %8, %2, %10#3 : tensor<3x5x4xcomplex<f32>>, tensor<3x4xi32>, tensor<3x5xi32>
  }
  func.func private @closed_call(%arg0: tensor<3x4xi32>, %arg1: tensor<i64>, %arg2: tensor<3x5xi32>) -> (tensor<i64>, tensor<3x5xi32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg1, %c : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.compare LT, %arg1, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = stablehlo.convert %arg1 : tensor<i64>
    %c_1 = stablehlo.constant dense<4> : tensor<i64>
    %3 = stablehlo.add %2, %c_1 : tensor<i64>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<i1>, tensor<i64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = true, slice_sizes = array<i64: 3, 1>}> : (tensor<3x4xi32>, tensor<1xi64>) -> tensor<3x1xi32>
    %7 = stablehlo.reshape %6 : (tensor<3x1xi32>) -> tensor<3xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %8 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %9 = stablehlo.convert %arg1 : tensor<i64>
    %c_3 = stablehlo.constant dense<5> : tensor<i64>
    %10 = stablehlo.add %9, %c_3 : tensor<i64>
    %11 = stablehlo.select %8, %10, %arg1 : tensor<i1>, tensor<i64>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %13 = "stablehlo.gather"(%arg2, %12) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = true, slice_sizes = array<i64: 3, 1>}> : (tensor<3x5xi32>, tensor<1xi64>) -> tensor<3x1xi32>
    %14 = stablehlo.reshape %13 : (tensor<3x1xi32>) -> tensor<3xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %16 = stablehlo.compare LT, %7, %15, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_5 = stablehlo.constant dense<5> : tensor<i32>
    %17 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %18 = stablehlo.add %7, %17 : tensor<3xi32>
    %19 = stablehlo.select %16, %18, %7 : tensor<3xi1>, tensor<3xi32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %21 = "stablehlo.gather"(%arg2, %20) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1>}> : (tensor<3x5xi32>, tensor<3x1xi32>) -> tensor<3x1xi32>
    %22 = stablehlo.reshape %21 : (tensor<3x1xi32>) -> tensor<3xi32>
    %c_6 = stablehlo.constant dense<0> : tensor<i64>
    %23 = stablehlo.compare LT, %arg1, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_7 = stablehlo.constant dense<5> : tensor<i64>
    %24 = stablehlo.add %arg1, %c_7 : tensor<i64>
    %25 = stablehlo.select %23, %24, %arg1 : tensor<i1>, tensor<i64>
    %26 = stablehlo.convert %25 : (tensor<i64>) -> tensor<i32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %28 = "stablehlo.scatter"(%arg2, %27, %22) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3x5xi32>, tensor<1xi32>, tensor<3xi32>) -> tensor<3x5xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %29 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %30 = stablehlo.compare LT, %7, %29, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_9 = stablehlo.constant dense<5> : tensor<i32>
    %31 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %32 = stablehlo.add %7, %31 : tensor<3xi32>
    %33 = stablehlo.select %30, %32, %7 : tensor<3xi1>, tensor<3xi32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %35 = "stablehlo.scatter"(%28, %34, %14) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3x5xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<3x5xi32>
    return %0, %35 : tensor<i64>, tensor<3x5xi32>
  }
}
