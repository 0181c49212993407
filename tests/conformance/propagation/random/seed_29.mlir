module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(1)2}, {"y", ?}]>}, %arg1: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4, ?}, {}]>}, %arg2: tensor<3x4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg3: tensor<16x16x4xf32>, %arg4: tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}, {?}]>}) -> (tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y"}, {?}]>}, tensor<16x8x4xf32>) {
    %v1 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 4, 0>, limit_indices = array<i64: 16, 8, 4>, strides = array<i64: 1, 1, 1>} : (tensor<16x8x4xf32>) -> (tensor<16x4x4xf32>)
    %v2 = "stablehlo.reverse"(%arg1) {dimensions = array<i64: 1>} : (tensor<4x16xf32>) -> (tensor<4x16xf32>)
    %v3 = "stablehlo.reshape"(%arg1) {} : (tensor<4x16xf32>) -> (tensor<64xf32>)
    %v4 = "stablehlo.convolution"(%arg3, %arg2) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<16x16x4xf32>, tensor<3x4x32xf32>) -> (tensor<16x16x32xf32>)
    %v5:2 = "stablehlo.sort"(%arg0, %arg4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<16x8x4xf32>, tensor<16x8x4xf32>) -> (tensor<16x8x4xf32>, tensor<16x8x4xf32>)
    return %v5#1, %v5#0 : tensor<16x8x4xf32>, tensor<16x8x4xf32>
  }
}
