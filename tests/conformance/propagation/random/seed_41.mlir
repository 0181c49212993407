module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>}, %arg1: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<2xf32>, %arg3: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}]>}) -> (tensor<32x32xf32>) {
    %v13 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:2 = stablehlo.while(%v1i0 = %arg0, %v1c = %v13) : tensor<16xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v11 = sdy.manual_computation(%v1i0, %v1i0, %arg1, %arg2) in_shardings=[<@mesh, [{?}]>, <@mesh, [{"x", ?}]>, <@mesh, [{?}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%v2a0: tensor<16xf32>, %v2a1: tensor<2xf32>, %v2a2: tensor<2xf32>, %v2a3: tensor<2xf32>) {
    %v6 = "func.call"(%v2a0, %v2a2, %v2a1, %v2a3) {callee = @f1} : (tensor<16xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>)
    %v7 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9:2 = "stablehlo.reduce"(%v2a1, %v2a1, %v7, %v8) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %v10 = "stablehlo.multiply"(%v6, %v6) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v10 : tensor<4xf32>
    } : (tensor<16xf32>, tensor<16xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<32xf32>)
    %v12 = "stablehlo.tanh"(%v1i0) {} : (tensor<16xf32>) -> (tensor<16xf32>)
    stablehlo.return %v12, %v1j : tensor<16xf32>, tensor<i32>
    }
    %v14 = "func.call"(%arg0, %arg2, %arg1, %arg2) {callee = @f1, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>} : (tensor<16xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>)
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.reduce_window"(%arg3, %v15) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<32x32xf32>, tensor<f32>) -> (tensor<32x16xf32>)
    %v17 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v18 = "stablehlo.pad"(%arg1, %v17) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 2>, interior_padding = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v19 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<2xi32>)
    %v20 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v21 = "stablehlo.broadcast_in_dim"(%v20) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<2xi32>)
    %v22 = "stablehlo.compare"(%v19, %v21) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi1>)
    %v23 = "stablehlo.select"(%v22, %arg2, %arg1) {} : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
    %v24 = "stablehlo.cholesky"(%arg3) {lower = true} : (tensor<32x32xf32>) -> (tensor<32x32xf32>)
    return %v24 : tensor<32x32xf32>
  }
  func.func @f1(%arg0: tensor<16xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>, %arg3: tensor<2xf32>) -> (tensor<4xf32>) {
    %v3 = "stablehlo.add"(%arg1, %arg2) {} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
    %v4 = "stablehlo.concatenate"(%v3, %arg3) {dimension = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>)
    %v5 = "stablehlo.reverse"(%arg1) {dimensions = array<i64: 0>} : (tensor<2xf32>) -> (tensor<2xf32>)
    return %v4 : tensor<4xf32>
  }
}
