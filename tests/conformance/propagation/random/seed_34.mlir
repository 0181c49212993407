module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], replicated={"y"}>}, %arg1: tensor<8x8xf32>, %arg2: tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {}, {}]>}, %arg3: tensor<8x4xf32>, %arg4: tensor<i32>, %arg5: tensor<8x16xf32>, %arg6: tensor<i32>, %arg7: tensor<8x1xi32>, %arg8: tensor<8x4xf32>) -> (tensor<16x8x2xf32>) {
    %v1 = "stablehlo.transpose"(%arg1) {permutation = array<i64: 0, 1>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    %v2 = "stablehlo.dynamic_update_slice"(%arg1, %arg3, %arg4, %arg4) {} : (tensor<8x8xf32>, tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<8x8xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3:3 = stablehlo.while(%v3i0 = %arg1, %v3i1 = %arg3, %v3c = %v12) : tensor<8x8xf32>, tensor<8x4xf32>, tensor<i32> cond {
    %v3l = stablehlo.constant dense<4> : tensor<i32>
    %v3q = stablehlo.compare LT, %v3c, %v3l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v3q : tensor<i1>
    } do {
    %v3o = stablehlo.constant dense<1> : tensor<i32>
    %v3j = stablehlo.add %v3c, %v3o : tensor<i32>
    %v8:2 = sdy.manual_computation(%v3i1, %arg5) in_shardings=[<@mesh, [{"y"}, {}]>, <@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{?}, {"y", "x", ?}]>, <@mesh, [{}, {"y", "x":(1)2}]>] manual_axes={"y"} (%v4a0: tensor<4x4xf32>, %v4a1: tensor<4x16xf32>) {
    %v5 = "stablehlo.slice"(%v4a0) {start_indices = array<i64: 0, 2>, limit_indices = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> (tensor<4x2xf32>)
    %v6 = "stablehlo.dot_general"(%v4a0, %v4a1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>)
    %v7 = "stablehlo.dot_general"(%v5, %v4a1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<4x2xf32>, tensor<4x16xf32>) -> (tensor<2x16xf32>)
    sdy.return %v7, %v6 : tensor<2x16xf32>, tensor<4x16xf32>
    } : (tensor<8x4xf32>, tensor<8x16xf32>) -> (tensor<2x32xf32>, tensor<4x32xf32>)
    %v9 = sdy.sharding_constraint %v8#0 <@mesh, [{"y"}, {}]> : tensor<2x32xf32>
    %v10 = "stablehlo.exponential"(%v3i0) {} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    %v11 = "stablehlo.tanh"(%v3i1) {} : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
    stablehlo.return %v10, %v11, %v3j : tensor<8x8xf32>, tensor<8x4xf32>, tensor<i32>
    }
    %v13 = "stablehlo.transpose"(%arg5) {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> (tensor<16x8xf32>)
    %v14 = "stablehlo.case"(%arg6) ({
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.reduce_window"(%v3#0, %v15) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<8x8xf32>, tensor<f32>) -> (tensor<8x4xf32>)
    %v17 = "stablehlo.reshape"(%v1) {} : (tensor<8x8xf32>) -> (tensor<64xf32>)
    %v18 = "stablehlo.scatter"(%arg3, %arg7, %v3#1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.multiply %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4xf32>, tensor<8x1xi32>, tensor<8x4xf32>) -> (tensor<8x4xf32>)
    stablehlo.return %v18 : tensor<8x4xf32>
    }, {
    %v19 = "stablehlo.cholesky"(%v3#0) {lower = true} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    %v20 = "stablehlo.negate"(%arg8) {} : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
    stablehlo.return %v20 : tensor<8x4xf32>
    }) : (tensor<i32>) -> tensor<8x4xf32>
    %v21 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v22 = "stablehlo.reduce_window"(%arg2, %v21) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<16x8x4xf32>, tensor<f32>) -> (tensor<16x8x2xf32>)
    return %v22 : tensor<16x8x2xf32>
  }
}
