module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<32x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"x", ?}]>}, %arg1: tensor<16x8x16xf32>, %arg2: tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"x", ?}]>}, %arg3: tensor<16x8xi32>, %arg4: tensor<16x64x16xf32>, %arg5: tensor<2x64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {}]>}, %arg6: tensor<2x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {}]>}, %arg7: tensor<2x64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {?}]>}, %arg8: tensor<2x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}, {}]>}, %arg9: tensor<2x32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {?}]>}) -> (tensor<16x8x8xf32>, tensor<2x32x16xf32>) {
    %v11 = sdy.manual_computation(%arg2, %arg3, %arg4, %arg5, %arg6) in_shardings=[<@mesh, [{"x", ?}, {?}, {?}]>, <@mesh, [{}, {"x"}]>, <@mesh, [{?}, {"x", ?}, {?}]>, <@mesh, [{?}, {"x", ?}, {?}]>, <@mesh, [{}, {?}, {?}]>] out_shardings=[<@mesh, [{}, {"x"}, {?}]>] manual_axes={"x"} (%v1a0: tensor<2x8x16xf32>, %v1a1: tensor<16x1xi32>, %v1a2: tensor<16x8x16xf32>, %v1a3: tensor<2x8x16xf32>, %v1a4: tensor<2x16x8xf32>) {
    %v4:2 = "func.call"(%v1a0, %v1a0) {callee = @f1} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> (tensor<16x16xf32>, tensor<2x8x16xf32>)
    %v5 = "stablehlo.scatter"(%v1a0, %v1a1, %v1a2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.multiply %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x8x16xf32>, tensor<16x1xi32>, tensor<16x8x16xf32>) -> (tensor<2x8x16xf32>)
    %v10 = "func.call"(%v1a3, %v1a0, %v1a4) {callee = @f2} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> (tensor<2x8x16xf32>)
    sdy.return %v4#1 : tensor<2x8x16xf32>
    } : (tensor<16x8x16xf32>, tensor<16x8xi32>, tensor<16x64x16xf32>, tensor<2x64x16xf32>, tensor<2x16x8xf32>) -> (tensor<2x64x16xf32>)
    %v15:2 = "func.call"(%arg7, %arg8, %arg9) {callee = @f3} : (tensor<2x64x16xf32>, tensor<2x8x16xf32>, tensor<2x32x1xi32>) -> (tensor<16x16xf32>, tensor<2x32x16xf32>)
    %v16 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 0, 0, 8>, limit_indices = array<i64: 16, 8, 16>, strides = array<i64: 1, 1, 1>} : (tensor<16x8x16xf32>) -> (tensor<16x8x8xf32>)
    return %v16, %v15#1 : tensor<16x8x8xf32>, tensor<2x32x16xf32>
  }
  func.func private @f1(%arg0: tensor<2x8x16xf32>, %arg1: tensor<2x8x16xf32>) -> (tensor<16x16xf32>, tensor<2x8x16xf32>) {
    %v2 = "stablehlo.reshape"(%arg1) {} : (tensor<2x8x16xf32>) -> (tensor<16x16xf32>)
    %v3 = "stablehlo.dot_general"(%arg1, %v2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> (tensor<2x8x16xf32>)
    return %v2, %v3 : tensor<16x16xf32>, tensor<2x8x16xf32>
  }
  func.func private @f2(%arg0: tensor<2x8x16xf32>, %arg1: tensor<2x8x16xf32>, %arg2: tensor<2x16x8xf32>) -> (tensor<2x8x16xf32>) {
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6:2 = stablehlo.while(%v6i0 = %arg0, %v6c = %v9) : tensor<2x8x16xf32>, tensor<i32> cond {
    %v6l = stablehlo.constant dense<4> : tensor<i32>
    %v6q = stablehlo.compare LT, %v6c, %v6l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v6q : tensor<i1>
    } do {
    %v6o = stablehlo.constant dense<1> : tensor<i32>
    %v6j = stablehlo.add %v6c, %v6o : tensor<i32>
    %v7 = "stablehlo.dot_general"(%v6i0, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> (tensor<2x8x8xf32>)
    %v8 = "stablehlo.tanh"(%v6i0) {} : (tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>)
    stablehlo.return %v8, %v6j : tensor<2x8x16xf32>, tensor<i32>
    }
    return %v6#0 : tensor<2x8x16xf32>
  }
  func.func private @f3(%arg0: tensor<2x64x16xf32>, %arg1: tensor<2x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %arg2: tensor<2x32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) -> (tensor<16x16xf32>, tensor<2x32x16xf32>) {
    %v12:2 = "func.call"(%arg1, %arg1) {callee = @f1} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> (tensor<16x16xf32>, tensor<2x8x16xf32>)
    %v13 = "stablehlo.gather"(%arg1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 16>, indices_are_sorted = false} : (tensor<2x8x16xf32>, tensor<2x32x1xi32>) -> (tensor<2x32x16xf32>)
    %v14:2 = "stablehlo.optimization_barrier"(%arg1, %v12#1) {} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>)
    return %v12#0, %v13 : tensor<16x16xf32>, tensor<2x32x16xf32>
  }
}
