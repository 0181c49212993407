module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}, {?}, {?}]>}, %arg1: tensor<16x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {"x"}]>}, %arg2: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg3: tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x"}p2, {}]>}) -> (tensor<32x16x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}) {
    %v1 = "stablehlo.slice"(%arg2) {start_indices = array<i64: 0>, limit_indices = array<i64: 8>, strides = array<i64: 1>} : (tensor<16xf32>) -> (tensor<8xf32>)
    %v2 = "stablehlo.tanh"(%v1) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    %v3 = "stablehlo.dot_general"(%arg1, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<16x32x8xf32>, tensor<16x8x16xf32>) -> (tensor<16x32x16xf32>)
    %v4 = "stablehlo.concatenate"(%arg2, %arg2) {dimension = 0 : i64} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32>)
    %v15:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {?}, {"x", "y", ?}]>] out_shardings=[<@mesh, [{?}, {}, {"x", "y", ?}]>, <@mesh, [{"x"}, {"y", ?}, {?}]>] manual_axes={"x", "y"} (%v5a0: tensor<8x8x1xf32>) {
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.reduce"(%v5a0, %v6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x8x1xf32>, tensor<f32>) -> (tensor<8x8xf32>)
    %v8 = "stablehlo.broadcast_in_dim"(%v7) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x8xf32>) -> (tensor<8x8x1xf32>)
    %v9 = "stablehlo.subtract"(%v5a0, %v8) {} : (tensor<8x8x1xf32>, tensor<8x8x1xf32>) -> (tensor<8x8x1xf32>)
    %v10 = "stablehlo.exponential"(%v9) {} : (tensor<8x8x1xf32>) -> (tensor<8x8x1xf32>)
    %v11 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v12 = "stablehlo.reduce"(%v10, %v11) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x8x1xf32>, tensor<f32>) -> (tensor<8x8xf32>)
    %v13 = "stablehlo.broadcast_in_dim"(%v12) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x8xf32>) -> (tensor<8x8x1xf32>)
    %v14 = "stablehlo.divide"(%v10, %v13) {} : (tensor<8x8x1xf32>, tensor<8x8x1xf32>) -> (tensor<8x8x1xf32>)
    sdy.return %v14, %v14 : tensor<8x8x1xf32>, tensor<8x8x1xf32>
    } : (tensor<8x8x8xf32>) -> (tensor<8x8x8xf32>, tensor<32x16x1xf32>)
    return %v15#1 : tensor<32x16x1xf32>
  }
}
