module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<4x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, %arg2: tensor<8x4xf32>, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", ?}]>}, %arg4: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg5: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}, %arg6: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}], unreduced={"x"}>}, %arg7: tensor<4x8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {?}, {}]>}) -> (tensor<4x8xf32>, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, tensor<4xf32>) {
    %v1 = sdy.propagation_barrier %arg2 allowed_direction=FORWARD : tensor<8x4xf32>
    %v2:2 = "stablehlo.optimization_barrier"(%arg1, %arg2) {} : (tensor<4x16x16xf32>, tensor<8x4xf32>) -> (tensor<4x16x16xf32>, tensor<8x4xf32>)
    %v3 = "stablehlo.dot_general"(%v2#1, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x4xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>)
    %v10 = "func.call"(%arg4, %arg5, %arg6, %arg6) {callee = @f1} : (tensor<16xf32>, tensor<8xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>)
    %v11 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v12 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v13:2 = "stablehlo.reduce"(%v3, %v3, %v11, %v12) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    %v14 = "stablehlo.gather"(%v3, %arg7) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<4x8xf32>, tensor<4x8x1xi32>) -> (tensor<4x8xf32>)
    return %v14, %v1, %v13#0 : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4xf32>
  }
  func.func private @f2(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.reduce"(%arg0, %v6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<16xf32>, tensor<f32>) -> (tensor<f32>)
    return %arg1, %arg1 : tensor<16xf32>, tensor<16xf32>
  }
  func.func private @f1(%arg0: tensor<16xf32>, %arg1: tensor<8xf32>, %arg2: tensor<16xf32>, %arg3: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
    %v4 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.dynamic_update_slice"(%arg0, %arg1, %v4) {} : (tensor<16xf32>, tensor<8xf32>, tensor<i32>) -> (tensor<16xf32>)
    %v8:2 = "func.call"(%arg2, %arg3) {callee = @f2} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v9:2 = "stablehlo.sort"(%arg2, %v8#1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    return %v9#1 : tensor<16xf32>
  }
}
