module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<16x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}, {"x"}]>}, %arg1: tensor<4x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {?}], replicated={"x"}>}, %arg2: tensor<2x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}, {"y"}]>}, %arg3: tensor<i32>, %arg4: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg5: tensor<8x8x16xf32>, %arg6: tensor<i32>) -> (tensor<2x16x16xf32>, tensor<4x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {}, {"x", ?}]>}, tensor<8x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {?}], unreduced={"x"}>}) {
    %v1 = "stablehlo.dynamic_update_slice"(%arg1, %arg2, %arg3, %arg3, %arg3) {} : (tensor<4x16x16xf32>, tensor<2x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<4x16x16xf32>)
    %v2 = "stablehlo.dot_general"(%arg0, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x8x16xf32>, tensor<16x8xf32>) -> (tensor<8x16x8xf32>)
    %v3 = "stablehlo.sort"(%v2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8x16x8xf32>) -> (tensor<8x16x8xf32>)
    %v4 = "stablehlo.dynamic_update_slice"(%arg0, %arg5, %arg6, %arg6, %arg6) {} : (tensor<16x8x16xf32>, tensor<8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x8x16xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v6 = "stablehlo.reduce"(%arg2, %v5) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<2x16x16xf32>, tensor<f32>) -> (tensor<2x16xf32>)
    %v7 = "stablehlo.broadcast_in_dim"(%v6) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x16xf32>) -> (tensor<2x16x16xf32>)
    %v8 = "stablehlo.subtract"(%arg2, %v7) {} : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> (tensor<2x16x16xf32>)
    %v9 = "stablehlo.exponential"(%v8) {} : (tensor<2x16x16xf32>) -> (tensor<2x16x16xf32>)
    %v10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v11 = "stablehlo.reduce"(%v9, %v10) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<2x16x16xf32>, tensor<f32>) -> (tensor<2x16xf32>)
    %v12 = "stablehlo.broadcast_in_dim"(%v11) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x16xf32>) -> (tensor<2x16x16xf32>)
    %v13 = "stablehlo.divide"(%v9, %v12) {} : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> (tensor<2x16x16xf32>)
    return %v13, %v1, %v3 : tensor<2x16x16xf32>, tensor<4x16x16xf32>, tensor<8x16x8xf32>
  }
}
