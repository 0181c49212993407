module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg1: tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"x", "y", ?}]>}, %arg2: tensor<16x16xf32>, %arg3: tensor<3x4x16xf32>, %arg4: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {}]>}) -> (tensor<8x16x16xf32>, tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) {
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:3 = stablehlo.while(%v1i0 = %arg1, %v1i1 = %arg1, %v1c = %v12) : tensor<16x8x16xf32>, tensor<16x8x16xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v2 = "stablehlo.dot_general"(%v1i0, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<16x8x16xf32>, tensor<16x16xf32>) -> (tensor<16x8x16xf32>)
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4 = "stablehlo.reduce"(%v1i1, %v3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x8x16xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v5 = "stablehlo.broadcast_in_dim"(%v4) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x8xf32>) -> (tensor<16x8x16xf32>)
    %v6 = "stablehlo.subtract"(%v1i1, %v5) {} : (tensor<16x8x16xf32>, tensor<16x8x16xf32>) -> (tensor<16x8x16xf32>)
    %v7 = "stablehlo.exponential"(%v6) {} : (tensor<16x8x16xf32>) -> (tensor<16x8x16xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.reduce"(%v7, %v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x8x16xf32>, tensor<f32>) -> (tensor<16x8xf32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x8xf32>) -> (tensor<16x8x16xf32>)
    %v11 = "stablehlo.divide"(%v7, %v10) {} : (tensor<16x8x16xf32>, tensor<16x8x16xf32>) -> (tensor<16x8x16xf32>)
    stablehlo.return %v11, %v2, %v1j : tensor<16x8x16xf32>, tensor<16x8x16xf32>, tensor<i32>
    }
    %v13 = "stablehlo.transpose"(%arg2) {permutation = array<i64: 0, 1>} : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
    %v14 = "stablehlo.convolution"(%arg4, %arg3) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<8x16x4xf32>, tensor<3x4x16xf32>) -> (tensor<8x16x16xf32>)
    return %v14, %v13 : tensor<8x16x16xf32>, tensor<16x16xf32>
  }
}
