module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<8x8xf32>, %arg3: tensor<3x16x8xf32>, %arg4: tensor<32x4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {}]>}, %arg5: tensor<32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"y"}>}, %arg6: tensor<i32>, %arg7: tensor<8x4xf32>, %arg8: tensor<8x1xi32>) -> (tensor<8x32xf32>) {
    %v1 = sdy.sharding_constraint %arg0 <@mesh, [{?}]> : tensor<4xf32>
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2:2 = stablehlo.while(%v2i0 = %arg0, %v2c = %v4) : tensor<4xf32>, tensor<i32> cond {
    %v2l = stablehlo.constant dense<4> : tensor<i32>
    %v2q = stablehlo.compare LT, %v2c, %v2l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v2q : tensor<i1>
    } do {
    %v2o = stablehlo.constant dense<1> : tensor<i32>
    %v2j = stablehlo.add %v2c, %v2o : tensor<i32>
    %v3:2 = "stablehlo.optimization_barrier"(%v2i0, %v2i0) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    stablehlo.return %v3#1, %v2j : tensor<4xf32>, tensor<i32>
    }
    %v5 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x32xf32>, tensor<8x8xf32>) -> (tensor<32x8xf32>)
    %v6 = "stablehlo.convolution"(%arg4, %arg3) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<32x4x32xf32>, tensor<3x16x8xf32>) -> (tensor<32x4x8xf32>)
    %v7 = "stablehlo.scatter"(%arg4, %arg5, %arg4) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x4x32xf32>, tensor<32x1xi32>, tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v8 = "stablehlo.case"(%arg6) ({
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%arg4, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<32x4x32xf32>, tensor<f32>) -> (tensor<32x4xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%v10) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<32x4xf32>) -> (tensor<32x4x32xf32>)
    %v12 = "stablehlo.subtract"(%arg4, %v11) {} : (tensor<32x4x32xf32>, tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v13 = "stablehlo.exponential"(%v12) {} : (tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v14 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v15 = "stablehlo.reduce"(%v13, %v14) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<32x4x32xf32>, tensor<f32>) -> (tensor<32x4xf32>)
    %v16 = "stablehlo.broadcast_in_dim"(%v15) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<32x4xf32>) -> (tensor<32x4x32xf32>)
    %v17 = "stablehlo.divide"(%v13, %v16) {} : (tensor<32x4x32xf32>, tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v18 = "stablehlo.dot_general"(%v5, %arg7) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<32x8xf32>, tensor<8x4xf32>) -> (tensor<32x4xf32>)
    %v19 = "stablehlo.negate"(%arg1) {} : (tensor<8x32xf32>) -> (tensor<8x32xf32>)
    stablehlo.return %v19 : tensor<8x32xf32>
    }, {
    %v20 = "stablehlo.scatter"(%arg1, %arg8, %arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x32xf32>, tensor<8x1xi32>, tensor<8x32xf32>) -> (tensor<8x32xf32>)
    %v21 = "stablehlo.sort"(%v2#0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> (tensor<4xf32>)
    stablehlo.return %v20 : tensor<8x32xf32>
    }) : (tensor<i32>) -> tensor<8x32xf32>
    return %v8 : tensor<8x32xf32>
  }
}
