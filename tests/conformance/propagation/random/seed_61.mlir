module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg1: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>}, %arg3: tensor<16xf32>, %arg4: tensor<3x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {}], replicated={"x"}>}, %arg5: tensor<32x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}, {?}]>}, %arg6: tensor<32x16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}, {?}]>}) -> (tensor<4x16x4xf32>) {
    %v1 = "stablehlo.concatenate"(%arg1, %arg3) {dimension = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32>)
    %v14:2 = sdy.manual_computation(%arg2, %arg3, %arg4, %arg5, %arg6) in_shardings=[<@mesh, [{?}, {"x"}]>, <@mesh, [{"x", ?}]>, <@mesh, [{?}, {}, {?}]>, <@mesh, [{"x", ?}, {?}, {?}]>, <@mesh, [{"x"}, {}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}, {}]>, <@mesh, [{}, {}, {?}]>] manual_axes={"x"} (%v2a0: tensor<8x1xf32>, %v2a1: tensor<2xf32>, %v2a2: tensor<3x16x4xf32>, %v2a3: tensor<4x16x16xf32>, %v2a4: tensor<4x16x1xi32>) {
    %v10:2 = "func.call"(%v2a1, %v2a2, %v2a3, %v2a4) {callee = @f1} : (tensor<2xf32>, tensor<3x16x4xf32>, tensor<4x16x16xf32>, tensor<4x16x1xi32>) -> (tensor<4x16x4xf32>, tensor<4x16x4xf32>)
    %v11 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v12 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v13:2 = "stablehlo.reduce"(%v10#0, %v10#1, %v11, %v12) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x16x4xf32>, tensor<4x16x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    sdy.return %v10#0, %v10#1 : tensor<4x16x4xf32>, tensor<4x16x4xf32>
    } : (tensor<8x8xf32>, tensor<16xf32>, tensor<3x16x4xf32>, tensor<32x16x16xf32>, tensor<32x16x1xi32>) -> (tensor<32x16x4xf32>, tensor<4x16x4xf32>)
    return %v14#1 : tensor<4x16x4xf32>
  }
  func.func private @f1(%arg0: tensor<2xf32>, %arg1: tensor<3x16x4xf32>, %arg2: tensor<4x16x16xf32>, %arg3: tensor<4x16x1xi32>) -> (tensor<4x16x4xf32>, tensor<4x16x4xf32>) {
    %v3 = "stablehlo.convolution"(%arg2, %arg1) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<4x16x16xf32>, tensor<3x16x4xf32>) -> (tensor<4x16x4xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v4:2 = stablehlo.while(%v4i0 = %v3, %v4c = %v8) : tensor<4x16x4xf32>, tensor<i32> cond {
    %v4l = stablehlo.constant dense<4> : tensor<i32>
    %v4q = stablehlo.compare LT, %v4c, %v4l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v4q : tensor<i1>
    } do {
    %v4o = stablehlo.constant dense<1> : tensor<i32>
    %v4j = stablehlo.add %v4c, %v4o : tensor<i32>
    %v5 = "stablehlo.gather"(%v4i0, %arg3) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false} : (tensor<4x16x4xf32>, tensor<4x16x1xi32>) -> (tensor<4x16x4xf32>)
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.pad"(%v5, %v6) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 0, 4>, interior_padding = array<i64: 0, 0, 0>} : (tensor<4x16x4xf32>, tensor<f32>) -> (tensor<4x16x8xf32>)
    stablehlo.return %v5, %v4j : tensor<4x16x4xf32>, tensor<i32>
    }
    %v9 = sdy.sharding_constraint %v4#0 <@mesh, [{?}, {?}, {}]> : tensor<4x16x4xf32>
    return %v4#0, %v9 : tensor<4x16x4xf32>, tensor<4x16x4xf32>
  }
}
