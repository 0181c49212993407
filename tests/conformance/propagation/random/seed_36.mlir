module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}, %arg1: tensor<4x16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4:2 = "stablehlo.reduce"(%v1, %v1, %v2, %v3) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<f32>, tensor<f32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v5 = sdy.propagation_barrier %v4#0 allowed_direction=BACKWARD : tensor<16xf32>
    %v6 = "stablehlo.concatenate"(%v1, %arg1) {dimension = 0 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<8x16xf32>)
    return %v6, %v5 : tensor<8x16xf32>, tensor<16xf32>
  }
}
