module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {}, {?}]>}, %arg1: tensor<32x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}, {}]>}, %arg2: tensor<4x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"y":(2)2}]>}, %arg3: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>}) -> (tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}, {?}]>}, tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2, ?}, {}, {}]>}, tensor<4x4x4xf32>, tensor<16x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {?}, {?}]>}) {
    %v1 = "stablehlo.negate"(%arg0) {} : (tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    %v2:2 = "stablehlo.optimization_barrier"(%v1, %v1) {} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>, tensor<4x4x8xf32>)
    %v3 = "stablehlo.dot_general"(%v1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<4x4x8xf32>, tensor<4x8x4xf32>) -> (tensor<4x4x4xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.reduce"(%v2#0, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<4x4x8xf32>, tensor<f32>) -> (tensor<4x4xf32>)
    %v6 = "stablehlo.broadcast_in_dim"(%v5) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> (tensor<4x4x8xf32>)
    %v7 = "stablehlo.subtract"(%v2#0, %v6) {} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    %v8 = "stablehlo.exponential"(%v7) {} : (tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%v8, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<4x4x8xf32>, tensor<f32>) -> (tensor<4x4xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%v10) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> (tensor<4x4x8xf32>)
    %v12 = "stablehlo.divide"(%v8, %v11) {} : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    %v13 = "stablehlo.gather"(%arg2, %arg3) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8, 4>, indices_are_sorted = false} : (tensor<4x8x4xf32>, tensor<16x1xi32>) -> (tensor<16x8x4xf32>)
    %v14 = "stablehlo.sort"(%v2#1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<4x4x8xf32>) -> (tensor<4x4x8xf32>)
    return %v14, %v2#1, %v3, %v13 : tensor<4x4x8xf32>, tensor<4x4x8xf32>, tensor<4x4x4xf32>, tensor<16x8x4xf32>
  }
}
