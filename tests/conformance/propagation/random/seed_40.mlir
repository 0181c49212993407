module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg1: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {"x":(2)4, ?}, {}]>}, %arg2: tensor<32xf32>, %arg3: tensor<1x8x2xf32>) -> (tensor<8x8x4xf32>, tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {?}]>}, tensor<8x16x4xf32>, tensor<8x16x2xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce_window"(%arg1, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<8x8x8xf32>, tensor<f32>) -> (tensor<8x8x4xf32>)
    %v14 = sdy.manual_computation(%arg1, %v2, %arg3) in_shardings=[<@mesh, [{?}, {?}, {?}]>, <@mesh, [{"x", ?}, {?}, {}]>, <@mesh, [{}, {?}, {}]>] out_shardings=[<@mesh, [{"x", ?}, {?}, {?}]>] manual_axes={"x"} (%v3a0: tensor<8x8x8xf32>, %v3a1: tensor<1x8x4xf32>, %v3a2: tensor<1x8x2xf32>) {
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
    %v7 = "stablehlo.dynamic_update_slice"(%v3a1, %v3a2, %v4, %v5, %v6) {} : (tensor<1x8x4xf32>, tensor<1x8x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<1x8x4xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v11 = "stablehlo.dynamic_slice"(%v3a0, %v8, %v9, %v10) {slice_sizes = array<i64: 4, 8, 8>} : (tensor<8x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<4x8x8xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v13 = "stablehlo.pad"(%v3a1, %v12) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 8, 0>, interior_padding = array<i64: 0, 0, 0>} : (tensor<1x8x4xf32>, tensor<f32>) -> (tensor<1x16x4xf32>)
    sdy.return %v13 : tensor<1x16x4xf32>
    } : (tensor<8x8x8xf32>, tensor<8x8x4xf32>, tensor<1x8x2xf32>) -> (tensor<8x16x4xf32>)
    %v17:2 = "func.call"(%arg1, %v14) {callee = @f1} : (tensor<8x8x8xf32>, tensor<8x16x4xf32>) -> (tensor<8x16x2xf32>, tensor<8x16x2xf32>)
    %v18 = "stablehlo.cholesky"(%arg1) {lower = true} : (tensor<8x8x8xf32>) -> (tensor<8x8x8xf32>)
    %v19 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v20 = "stablehlo.reduce"(%v17#1, %v19) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x16x2xf32>, tensor<f32>) -> (tensor<8x16xf32>)
    %v21 = "stablehlo.broadcast_in_dim"(%v20) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> (tensor<8x16x2xf32>)
    %v22 = "stablehlo.subtract"(%v17#1, %v21) {} : (tensor<8x16x2xf32>, tensor<8x16x2xf32>) -> (tensor<8x16x2xf32>)
    %v23 = "stablehlo.exponential"(%v22) {} : (tensor<8x16x2xf32>) -> (tensor<8x16x2xf32>)
    %v24 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v25 = "stablehlo.reduce"(%v23, %v24) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x16x2xf32>, tensor<f32>) -> (tensor<8x16xf32>)
    %v26 = "stablehlo.broadcast_in_dim"(%v25) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> (tensor<8x16x2xf32>)
    %v27 = "stablehlo.divide"(%v23, %v26) {} : (tensor<8x16x2xf32>, tensor<8x16x2xf32>) -> (tensor<8x16x2xf32>)
    %v28 = "stablehlo.add"(%v2, %v2) {} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    return %v28, %v2, %v14, %v17#0 : tensor<8x8x4xf32>, tensor<8x8x4xf32>, tensor<8x16x4xf32>, tensor<8x16x2xf32>
  }
  func.func private @f1(%arg0: tensor<8x8x8xf32>, %arg1: tensor<8x16x4xf32>) -> (tensor<8x16x2xf32>, tensor<8x16x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}, {}]>}) {
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.reduce_window"(%arg1, %v15) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>} : (tensor<8x16x4xf32>, tensor<f32>) -> (tensor<8x16x2xf32>)
    return %v16, %v16 : tensor<8x16x2xf32>, tensor<8x16x2xf32>
  }
}
