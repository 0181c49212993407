module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}, %arg1: tensor<8x1xi32>, %arg2: tensor<16x8xf32>, %arg3: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}, {}]>}, %arg4: tensor<8x4x8xf32>) -> (tensor<2xf32>) {
    %v13:2 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"y"}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%v1a0: tensor<4x8xf32>, %v1a1: tensor<8x1xi32>, %v1a2: tensor<8x8xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v3 = "stablehlo.scatter"(%v2, %v1a1, %v1a2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<4x8xf32>, tensor<8x1xi32>, tensor<8x8xf32>) -> (tensor<4x8xf32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5 = "stablehlo.reduce"(%v3, %v4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v6 = "stablehlo.broadcast_in_dim"(%v5) {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4x8xf32>)
    %v7 = "stablehlo.subtract"(%v3, %v6) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v8 = "stablehlo.exponential"(%v7) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%v8, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%v10) {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4x8xf32>)
    %v12 = "stablehlo.divide"(%v8, %v11) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    sdy.return %v12, %v12 : tensor<4x8xf32>, tensor<4x8xf32>
    } : (tensor<8x8xf32>, tensor<8x1xi32>, tensor<16x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    %v14 = "stablehlo.dot_general"(%arg3, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x4x4xf32>, tensor<8x4x8xf32>) -> (tensor<8x4x8xf32>)
    %v25:2 = "func.call"(%arg0, %arg0) {callee = @f1} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<4xf32>, tensor<2xf32>)
    return %v25#1 : tensor<2xf32>
  }
  func.func private @f2(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    %v21:2 = "stablehlo.optimization_barrier"(%arg0, %arg0) {} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
    %v22 = "stablehlo.tanh"(%v21#1) {} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    %v23 = "stablehlo.tanh"(%v22) {} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    return %v23 : tensor<8x8xf32>
  }
  func.func private @f1(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
    %v20:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {"x"}]>] out_shardings=[<@mesh, [{"y"}]>, <@mesh, [{}]>] manual_axes={"x", "y"} (%v15a0: tensor<8x2xf32>) {
    %v16 = "stablehlo.tanh"(%v15a0) {} : (tensor<8x2xf32>) -> (tensor<8x2xf32>)
    %v17 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v18 = "stablehlo.reduce"(%v16, %v17) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8x2xf32>, tensor<f32>) -> (tensor<2xf32>)
    %v19 = "stablehlo.tanh"(%v18) {} : (tensor<2xf32>) -> (tensor<2xf32>)
    sdy.return %v19, %v19 : tensor<2xf32>, tensor<2xf32>
    } : (tensor<8x8xf32>) -> (tensor<4xf32>, tensor<2xf32>)
    %v24 = "func.call"(%arg1) {callee = @f2} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    return %v20#0, %v20#1 : tensor<4xf32>, tensor<2xf32>
  }
}
