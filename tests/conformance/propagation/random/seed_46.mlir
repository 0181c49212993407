module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", ?}, {"x"}]>}, %arg1: tensor<i32>, %arg2: tensor<32x16xf32>, %arg3: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"y"}>}, %arg4: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %arg5: tensor<3x4x16xf32>, %arg6: tensor<16x32x8xf32>) -> (tensor<32x16xf32>) {
    %v1 = "stablehlo.case"(%arg1) ({
    %v2 = "stablehlo.dot_general"(%arg0, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<16x8x32xf32>, tensor<32x16xf32>) -> (tensor<16x8x16xf32>)
    %v7 = sdy.manual_computation(%arg0, %arg2) in_shardings=[<@mesh, [{"x"}, {?}, {"y"}]>, <@mesh, [{"x", ?}, {"y"}]>] out_shardings=[<@mesh, [{}, {"x", ?}, {}]>] manual_axes={"y"} (%v3a0: tensor<16x8x8xf32>, %v3a1: tensor<32x4xf32>) {
    %v6 = sdy.manual_computation(%v3a0, %v3a0) in_shardings=[<@mesh, [{}, {"x"}, {}]>, <@mesh, [{"x", ?}, {}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}, {?}]>] manual_axes={"x"} (%v4a0: tensor<16x4x8xf32>, %v4a1: tensor<8x8x8xf32>) {
    %v5 = sdy.sharding_constraint %v4a1 <@mesh, [{?}, {}, {?}]> : tensor<8x8x8xf32>
    sdy.return %v5 : tensor<8x8x8xf32>
    } : (tensor<16x8x8xf32>, tensor<16x8x8xf32>) -> (tensor<16x8x8xf32>)
    sdy.return %v6 : tensor<16x8x8xf32>
    } : (tensor<16x8x32xf32>, tensor<32x16xf32>) -> (tensor<16x8x8xf32>)
    %v14:2 = "func.call"(%arg2, %arg2, %arg3, %arg2, %arg4, %arg5, %arg6) {callee = @f1} : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<16x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<3x4x16xf32>, tensor<16x32x8xf32>) -> (tensor<16x32x16xf32>, tensor<4x32x16xf32>)
    %v15 = "stablehlo.negate"(%arg0) {} : (tensor<16x8x32xf32>) -> (tensor<16x8x32xf32>)
    stablehlo.return %v15 : tensor<16x8x32xf32>
    }, {
    %v16 = "stablehlo.reverse"(%arg2) {dimensions = array<i64: 0>} : (tensor<32x16xf32>) -> (tensor<32x16xf32>)
    %v17 = "stablehlo.negate"(%arg0) {} : (tensor<16x8x32xf32>) -> (tensor<16x8x32xf32>)
    stablehlo.return %v17 : tensor<16x8x32xf32>
    }) : (tensor<i32>) -> tensor<16x8x32xf32>
    %v18 = "stablehlo.exponential"(%arg4) {} : (tensor<32x16xf32>) -> (tensor<32x16xf32>)
    return %v18 : tensor<32x16xf32>
  }
  func.func private @f2(%arg0: tensor<32x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<3x4x16xf32>, %arg3: tensor<16x32x8xf32>) -> (tensor<4x32x16xf32>, tensor<16x32x16xf32>) {
    %v10 = "stablehlo.convolution"(%arg3, %arg2) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<16x32x8xf32>, tensor<3x4x16xf32>) -> (tensor<16x32x16xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<32x16xf32>) -> (tensor<4x32x16xf32>)
    %v12 = "stablehlo.transpose"(%v10) {permutation = array<i64: 0, 2, 1>} : (tensor<16x32x16xf32>) -> (tensor<16x16x32xf32>)
    return %v11, %v10 : tensor<4x32x16xf32>, tensor<16x32x16xf32>
  }
  func.func private @f1(%arg0: tensor<32x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<16x16xf32>, %arg3: tensor<32x16xf32>, %arg4: tensor<32x16xf32>, %arg5: tensor<3x4x16xf32>, %arg6: tensor<16x32x8xf32>) -> (tensor<16x32x16xf32>, tensor<4x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}, {}]>}) {
    %v8 = "stablehlo.add"(%arg0, %arg1) {} : (tensor<32x16xf32>, tensor<32x16xf32>) -> (tensor<32x16xf32>)
    %v9 = "stablehlo.dot_general"(%v8, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<32x16xf32>, tensor<16x16xf32>) -> (tensor<32x16xf32>)
    %v13:2 = "func.call"(%arg3, %arg4, %arg5, %arg6) {callee = @f2} : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<3x4x16xf32>, tensor<16x32x8xf32>) -> (tensor<4x32x16xf32>, tensor<16x32x16xf32>)
    return %v13#1, %v13#0 : tensor<16x32x16xf32>, tensor<4x32x16xf32>
  }
}
