module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<8x8x8xf32>, %arg1: tensor<8x4xf32>) -> (tensor<8x8x8xf32>) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x8x8xf32>, tensor<8x4xf32>) -> (tensor<8x8x4xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2:2 = stablehlo.while(%v2i0 = %arg0, %v2c = %v12) : tensor<8x8x8xf32>, tensor<i32> cond {
    %v2l = stablehlo.constant dense<4> : tensor<i32>
    %v2q = stablehlo.compare LT, %v2c, %v2l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v2q : tensor<i1>
    } do {
    %v2o = stablehlo.constant dense<1> : tensor<i32>
    %v2j = stablehlo.add %v2c, %v2o : tensor<i32>
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4 = "stablehlo.reduce"(%v2i0, %v3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x8x8xf32>, tensor<f32>) -> (tensor<8x8xf32>)
    %v5 = "stablehlo.broadcast_in_dim"(%v4) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x8xf32>) -> (tensor<8x8x8xf32>)
    %v6 = "stablehlo.subtract"(%v2i0, %v5) {} : (tensor<8x8x8xf32>, tensor<8x8x8xf32>) -> (tensor<8x8x8xf32>)
    %v7 = "stablehlo.exponential"(%v6) {} : (tensor<8x8x8xf32>) -> (tensor<8x8x8xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.reduce"(%v7, %v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x8x8xf32>, tensor<f32>) -> (tensor<8x8xf32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x8xf32>) -> (tensor<8x8x8xf32>)
    %v11 = "stablehlo.divide"(%v7, %v10) {} : (tensor<8x8x8xf32>, tensor<8x8x8xf32>) -> (tensor<8x8x8xf32>)
    stablehlo.return %v11, %v2j : tensor<8x8x8xf32>, tensor<i32>
    }
    return %v2#0 : tensor<8x8x8xf32>
  }
}
