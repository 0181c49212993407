module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {?}p1]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], replicated={"y"}>}, %arg2: tensor<32x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}p2, {?}]>}, %arg3: tensor<4x16x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"x", ?}]>}, %arg4: tensor<6x64x4xf32>, %arg5: tensor<16x32x8xf32>, %arg6: tensor<16x32x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg7: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg8: tensor<32x1xi32>, %arg9: tensor<4x16x32xf32>) -> (tensor<32x16x32xf32>, tensor<4x16x32xf32>, tensor<4xf32>) {
    %v13 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:3 = stablehlo.while(%v1i0 = %arg0, %v1i1 = %arg1, %v1c = %v13) : tensor<4x16x32xf32>, tensor<8xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.reduce"(%v1i0, %v2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0, 2>} : (tensor<4x16x32xf32>, tensor<f32>) -> (tensor<16xf32>)
    %v4:2 = "stablehlo.optimization_barrier"(%v3, %v3) {} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v10:2 = sdy.manual_computation(%v1i0, %v1i0, %arg2, %arg3) in_shardings=[<@mesh, [{?}, {?}, {"y"}]>, <@mesh, [{"y"}, {?}, {"x"}]>, <@mesh, [{"y"}, {"x", ?}]>, <@mesh, [{"y", ?}, {?}, {"x", ?}]>] out_shardings=[<@mesh, [{}, {"y", ?}, {"x"}]>, <@mesh, [{"x", "y", ?}, {}, {?}]>] manual_axes={"x"} (%v5a0: tensor<4x16x32xf32>, %v5a1: tensor<4x16x4xf32>, %v5a2: tensor<32x1xi32>, %v5a3: tensor<4x16x32xf32>) {
    %v9:2 = "func.call"(%v5a0, %v5a0, %v5a2, %v5a3) {callee = @f1} : (tensor<4x16x32xf32>, tensor<4x16x32xf32>, tensor<32x1xi32>, tensor<4x16x32xf32>) -> (tensor<4x16x64xf32>, tensor<32x16x32xf32>)
    sdy.return %v9#0, %v9#0 : tensor<4x16x64xf32>, tensor<4x16x64xf32>
    } : (tensor<4x16x32xf32>, tensor<4x16x32xf32>, tensor<32x8xi32>, tensor<4x16x256xf32>) -> (tensor<4x16x512xf32>, tensor<32x16x64xf32>)
    %v11 = "stablehlo.tanh"(%v1i0) {} : (tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>)
    %v12 = "stablehlo.tanh"(%v1i1) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    stablehlo.return %v11, %v12, %v1j : tensor<4x16x32xf32>, tensor<8xf32>, tensor<i32>
    }
    %v25 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v14:3 = stablehlo.while(%v14i0 = %arg0, %v14i1 = %arg1, %v14c = %v25) : tensor<4x16x32xf32>, tensor<8xf32>, tensor<i32> cond {
    %v14l = stablehlo.constant dense<4> : tensor<i32>
    %v14q = stablehlo.compare LT, %v14c, %v14l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v14q : tensor<i1>
    } do {
    %v14o = stablehlo.constant dense<1> : tensor<i32>
    %v14j = stablehlo.add %v14c, %v14o : tensor<i32>
    %v22:2 = sdy.manual_computation(%v14i0, %arg4, %arg5, %arg6) in_shardings=[<@mesh, [{}, {"x", ?}, {"y"}]>, <@mesh, [{"y"}, {"x", ?}, {?}]>, <@mesh, [{}, {}, {}]>, <@mesh, [{?}, {?}, {"x", ?}]>] out_shardings=[<@mesh, [{"y"}, {}, {"x"}]>, <@mesh, [{"x"}, {?}, {?}]>] manual_axes={"x", "y"} (%v15a0: tensor<4x2x16xf32>, %v15a1: tensor<3x8x4xf32>, %v15a2: tensor<16x32x8xf32>, %v15a3: tensor<16x32x1xi32>) {
    %v21 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v16:3 = stablehlo.while(%v16i0 = %v15a0, %v16i1 = %v15a0, %v16c = %v21) : tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<i32> cond {
    %v16l = stablehlo.constant dense<4> : tensor<i32>
    %v16q = stablehlo.compare LT, %v16c, %v16l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v16q : tensor<i1>
    } do {
    %v16o = stablehlo.constant dense<1> : tensor<i32>
    %v16j = stablehlo.add %v16c, %v16o : tensor<i32>
    %v17 = "stablehlo.convolution"(%v15a2, %v15a1) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x32x8xf32>, tensor<3x8x4xf32>) -> (tensor<16x32x4xf32>)
    %v18 = "stablehlo.gather"(%v17, %v15a3) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false} : (tensor<16x32x4xf32>, tensor<16x32x1xi32>) -> (tensor<16x32x4xf32>)
    %v19 = "stablehlo.tanh"(%v16i0) {} : (tensor<4x2x16xf32>) -> (tensor<4x2x16xf32>)
    %v20 = "stablehlo.tanh"(%v16i1) {} : (tensor<4x2x16xf32>) -> (tensor<4x2x16xf32>)
    stablehlo.return %v19, %v20, %v16j : tensor<4x2x16xf32>, tensor<4x2x16xf32>, tensor<i32>
    }
    sdy.return %v16#1, %v16#1 : tensor<4x2x16xf32>, tensor<4x2x16xf32>
    } : (tensor<4x16x32xf32>, tensor<6x64x4xf32>, tensor<16x32x8xf32>, tensor<16x32x8xi32>) -> (tensor<8x2x128xf32>, tensor<32x2x16xf32>)
    %v23 = "stablehlo.tanh"(%v14i0) {} : (tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>)
    %v24 = "stablehlo.tanh"(%v14i1) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    stablehlo.return %v23, %v24, %v14j : tensor<4x16x32xf32>, tensor<8xf32>, tensor<i32>
    }
    %v26 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v27 = "stablehlo.dynamic_slice"(%v14#1, %v26) {slice_sizes = array<i64: 4>} : (tensor<8xf32>, tensor<i32>) -> (tensor<4xf32>)
    %v28 = "stablehlo.scatter"(%arg0, %arg7, %v14#0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<4x16x32xf32>, tensor<4x1xi32>, tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>)
    %v29:2 = "func.call"(%v14#0, %v28, %arg8, %arg9) {callee = @f1} : (tensor<4x16x32xf32>, tensor<4x16x32xf32>, tensor<32x1xi32>, tensor<4x16x32xf32>) -> (tensor<4x16x64xf32>, tensor<32x16x32xf32>)
    return %v29#1, %v1#0, %v27 : tensor<32x16x32xf32>, tensor<4x16x32xf32>, tensor<4xf32>
  }
  func.func private @f1(%arg0: tensor<4x16x32xf32>, %arg1: tensor<4x16x32xf32>, %arg2: tensor<32x1xi32>, %arg3: tensor<4x16x32xf32>) -> (tensor<4x16x64xf32>, tensor<32x16x32xf32>) {
    %v6 = "stablehlo.gather"(%arg1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 32>, indices_are_sorted = false} : (tensor<4x16x32xf32>, tensor<32x1xi32>) -> (tensor<32x16x32xf32>)
    %v7 = "stablehlo.concatenate"(%arg0, %arg3) {dimension = 2 : i64} : (tensor<4x16x32xf32>, tensor<4x16x32xf32>) -> (tensor<4x16x64xf32>)
    %v8 = "stablehlo.reverse"(%arg3) {dimensions = array<i64: 1>} : (tensor<4x16x32xf32>) -> (tensor<4x16x32xf32>)
    return %v7, %v6 : tensor<4x16x64xf32>, tensor<32x16x32xf32>
  }
}
