module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %arg3: tensor<16x4x4xf32>, %arg4: tensor<16x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}, {}]>}) -> (tensor<16x4x8xf32>) {
    %v19 = "func.call"(%arg1, %arg2, %arg3, %arg4) {callee = @f1} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x4x4xf32>, tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    %v20 = "stablehlo.tanh"(%v19) {} : (tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    return %v20 : tensor<16x4x8xf32>
  }
  func.func private @f1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<16x4x4xf32>, %arg3: tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>) {
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:2 = stablehlo.while(%v1i0 = %arg1, %v1c = %v9) : tensor<4x4xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v6 = sdy.manual_computation(%v1i0, %arg2, %arg3) in_shardings=[<@mesh, [{"y"}, {}]>, <@mesh, [{}, {}, {}]>, <@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y"} (%v2a0: tensor<1x4xf32>, %v2a1: tensor<16x4x4xf32>, %v2a2: tensor<16x4x8xf32>) {
    %v3 = "stablehlo.tanh"(%v2a0) {} : (tensor<1x4xf32>) -> (tensor<1x4xf32>)
    %v4 = "stablehlo.tanh"(%v3) {} : (tensor<1x4xf32>) -> (tensor<1x4xf32>)
    %v5 = "stablehlo.dot_general"(%v2a1, %v2a2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<16x4x4xf32>, tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    sdy.return %v4 : tensor<1x4xf32>
    } : (tensor<4x4xf32>, tensor<16x4x4xf32>, tensor<16x4x8xf32>) -> (tensor<1x4xf32>)
    %v7 = "stablehlo.sort"(%v6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<1x4xf32>) -> (tensor<1x4xf32>)
    %v8 = "stablehlo.tanh"(%v1i0) {} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    stablehlo.return %v8, %v1j : tensor<4x4xf32>, tensor<i32>
    }
    %v10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v11 = "stablehlo.reduce"(%arg3, %v10) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x4x8xf32>, tensor<f32>) -> (tensor<16x4xf32>)
    %v12 = "stablehlo.broadcast_in_dim"(%v11) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x4xf32>) -> (tensor<16x4x8xf32>)
    %v13 = "stablehlo.subtract"(%arg3, %v12) {} : (tensor<16x4x8xf32>, tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    %v14 = "stablehlo.exponential"(%v13) {} : (tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.reduce"(%v14, %v15) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<16x4x8xf32>, tensor<f32>) -> (tensor<16x4xf32>)
    %v17 = "stablehlo.broadcast_in_dim"(%v16) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<16x4xf32>) -> (tensor<16x4x8xf32>)
    %v18 = "stablehlo.divide"(%v14, %v17) {} : (tensor<16x4x8xf32>, tensor<16x4x8xf32>) -> (tensor<16x4x8xf32>)
    return %v18 : tensor<16x4x8xf32>
  }
}
