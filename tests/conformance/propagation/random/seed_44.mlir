module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<4x8x16xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg3: tensor<8x16xf32>, %arg4: tensor<3x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg5: tensor<32x128x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}, {?}]>}, %arg6: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %v1 = "stablehlo.dot_general"(%arg1, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> (tensor<4x16xf32>)
    %v10 = "func.call"(%arg2, %arg4, %arg5, %arg4) {callee = @f1} : (tensor<4x4x8xf32>, tensor<3x16x16xf32>, tensor<32x128x16xf32>, tensor<3x16x16xf32>) -> (tensor<8x4x4xf32>)
    %v11 = "stablehlo.gather"(%arg5, %arg6) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 128, 16>, indices_are_sorted = false} : (tensor<32x128x16xf32>, tensor<16x1xi32>) -> (tensor<16x128x16xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v13 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v14:2 = "stablehlo.reduce"(%arg2, %arg2, %v12, %v13) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %v14#1, %v14#0 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  func.func @f1(%arg0: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {}]>}, %arg1: tensor<3x16x16xf32>, %arg2: tensor<32x128x16xf32>, %arg3: tensor<3x16x16xf32>) -> (tensor<8x4x4xf32>) {
    %v8:2 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}, {?}, {}]>, <@mesh, [{?}, {?}, {?}]>, <@mesh, [{?}, {"x", ?}, {?}]>, <@mesh, [{?}, {}, {?}]>] out_shardings=[<@mesh, [{"x"}, {}, {}]>, <@mesh, [{"x", ?}, {?}, {}]>] manual_axes={"x"} (%v2a0: tensor<4x4x8xf32>, %v2a1: tensor<3x16x16xf32>, %v2a2: tensor<32x16x16xf32>, %v2a3: tensor<3x16x16xf32>) {
    %v7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3:2 = stablehlo.while(%v3i0 = %v2a0, %v3c = %v7) : tensor<4x4x8xf32>, tensor<i32> cond {
    %v3l = stablehlo.constant dense<4> : tensor<i32>
    %v3q = stablehlo.compare LT, %v3c, %v3l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v3q : tensor<i1>
    } do {
    %v3o = stablehlo.constant dense<1> : tensor<i32>
    %v3j = stablehlo.add %v3c, %v3o : tensor<i32>
    %v4 = "stablehlo.convolution"(%v2a2, %v2a1) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<32x16x16xf32>, tensor<3x16x16xf32>) -> (tensor<32x16x16xf32>)
    %v5 = "stablehlo.maximum"(%v2a1, %v2a3) {} : (tensor<3x16x16xf32>, tensor<3x16x16xf32>) -> (tensor<3x16x16xf32>)
    %v6 = "stablehlo.tanh"(%v3i0) {} : (tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    stablehlo.return %v6, %v3j : tensor<4x4x8xf32>, tensor<i32>
    }
    sdy.return %v3#0, %v3#0 : tensor<4x4x8xf32>, tensor<4x4x8xf32>
    } : (tensor<4x4x8xf32>, tensor<3x16x16xf32>, tensor<32x128x16xf32>, tensor<3x16x16xf32>) -> (tensor<32x4x8xf32>, tensor<32x4x8xf32>)
    %v9 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<4x4x8xf32>) -> (tensor<8x4x4xf32>)
    return %v9 : tensor<8x4x4xf32>
  }
}
