module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<8xf32>, %arg3: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg4: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x4xf32>, tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3:2 = "stablehlo.reduce"(%arg1, %arg2, %v1, %v2) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %v4 = "stablehlo.gather"(%arg3, %arg4) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<4x4xf32>, tensor<4x1xi32>) -> (tensor<4x4xf32>)
    %v5 = "stablehlo.concatenate"(%arg2, %arg1) {dimension = 0 : i64} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<16xf32>)
    %v6 = sdy.sharding_constraint %v5 <@mesh, [{"y", "x"}]> : tensor<16xf32>
    %v7 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v8 = "stablehlo.reduce"(%v6, %v7) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<16xf32>, tensor<f32>) -> (tensor<f32>)
    %v9 = "stablehlo.dot_general"(%v4, %arg5) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %v9, %v4, %v5 : tensor<4x8xf32>, tensor<4x4xf32>, tensor<16xf32>
  }
}
