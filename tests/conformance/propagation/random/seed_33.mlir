module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}]>}, %arg1: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}, {}]>}, %arg2: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}, {?}]>}, %arg3: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}], replicated={"x"}>}, %arg4: tensor<16x16xf32>, %arg5: tensor<16x32xf32>, %arg6: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
    %v1 = "stablehlo.scatter"(%arg1, %arg3, %arg4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x16xf32>, tensor<16x1xi32>, tensor<16x16xf32>) -> (tensor<32x16xf32>)
    %v2 = "stablehlo.dot_general"(%arg2, %arg5) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x8xf32>, tensor<16x32xf32>) -> (tensor<8x32xf32>)
    %v3 = "stablehlo.sort"(%arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v4 = "stablehlo.exponential"(%arg2) {} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7:2 = "stablehlo.reduce"(%arg2, %arg6, %v5, %v6) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %v7#1, %v7#0 : tensor<8xf32>, tensor<8xf32>
  }
}
