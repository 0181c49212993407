module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg1: tensor<3x16x8xf32>, %arg2: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(1)2, ?}, {"y", ?}]>}, %arg3: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", "y"}, {?}]>}, %arg4: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}, %arg5: tensor<16x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}, {}, {?}]>}) -> (tensor<16x16x8xf32>, tensor<16x16x8xf32>) {
    %v1 = "stablehlo.convolution"(%arg2, %arg1) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x16xf32>, tensor<3x16x8xf32>) -> (tensor<16x16x8xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2:2 = stablehlo.while(%v2i0 = %arg2, %v2c = %v12) : tensor<16x16x16xf32>, tensor<i32> cond {
    %v2l = stablehlo.constant dense<4> : tensor<i32>
    %v2q = stablehlo.compare LT, %v2c, %v2l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v2q : tensor<i1>
    } do {
    %v2o = stablehlo.constant dense<1> : tensor<i32>
    %v2j = stablehlo.add %v2c, %v2o : tensor<i32>
    %v11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3:3 = stablehlo.while(%v3i0 = %v2i0, %v3i1 = %v2i0, %v3c = %v11) : tensor<16x16x16xf32>, tensor<16x16x16xf32>, tensor<i32> cond {
    %v3l = stablehlo.constant dense<4> : tensor<i32>
    %v3q = stablehlo.compare LT, %v3c, %v3l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v3q : tensor<i1>
    } do {
    %v3o = stablehlo.constant dense<1> : tensor<i32>
    %v3j = stablehlo.add %v3c, %v3o : tensor<i32>
    %v4 = "stablehlo.reshape"(%v3i1) {} : (tensor<16x16x16xf32>) -> (tensor<256x16xf32>)
    %v5 = "stablehlo.reverse"(%v4) {dimensions = array<i64: 0>} : (tensor<256x16xf32>) -> (tensor<256x16xf32>)
    %v10 = "func.call"(%arg3, %v3i1, %arg4, %v3i1) {callee = @f1} : (tensor<16x16x16xf32>, tensor<16x16x16xf32>, tensor<16x1xi32>, tensor<16x16x16xf32>) -> (tensor<16x16x16xf32>)
    stablehlo.return %v10, %v10, %v3j : tensor<16x16x16xf32>, tensor<16x16x16xf32>, tensor<i32>
    }
    stablehlo.return %v3#1, %v2j : tensor<16x16x16xf32>, tensor<i32>
    }
    %v13 = "stablehlo.dot_general"(%v2#0, %arg5) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<16x16x16xf32>, tensor<16x16x8xf32>) -> (tensor<16x16x8xf32>)
    return %v13, %v1 : tensor<16x16x8xf32>, tensor<16x16x8xf32>
  }
  func.func private @f1(%arg0: tensor<16x16x16xf32>, %arg1: tensor<16x16x16xf32>, %arg2: tensor<16x1xi32>, %arg3: tensor<16x16x16xf32>) -> (tensor<16x16x16xf32>) {
    %v6 = "stablehlo.cholesky"(%arg0) {lower = true} : (tensor<16x16x16xf32>) -> (tensor<16x16x16xf32>)
    %v7 = "stablehlo.scatter"(%arg0, %arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x16x16xf32>, tensor<16x1xi32>, tensor<16x16x16xf32>) -> (tensor<16x16x16xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.reduce"(%arg3, %v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0, 1>} : (tensor<16x16x16xf32>, tensor<f32>) -> (tensor<16xf32>)
    return %v6 : tensor<16x16x16xf32>
  }
}
