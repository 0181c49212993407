module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}]>}, %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}, %arg3: tensor<3x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %arg4: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"x", ?}]>}, %arg5: tensor<i32>, %arg6: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", "x"}]>}, %arg7: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg8: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}, {?}]>}, %arg9: tensor<i32>, %arg10: tensor<4x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg11: tensor<i32>, %arg12: tensor<16x4xi32>, %arg13: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}, {}]>}, %arg14: tensor<16x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>}, %arg15: tensor<8x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}, %arg16: tensor<32x4xi32>) -> (tensor<4x16xf32>) {
    %v1:2 = "stablehlo.optimization_barrier"(%arg1, %arg1) {} : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    %v2 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<8x16xi32>)
    %v3 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.broadcast_in_dim"(%v3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<8x16xi32>)
    %v5 = "stablehlo.compare"(%v2, %v4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<8x16xi32>, tensor<8x16xi32>) -> (tensor<8x16xi1>)
    %v6 = "stablehlo.select"(%v5, %v1#0, %arg2) {} : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>)
    %v7 = "stablehlo.convolution"(%arg4, %arg3) {window_strides = array<i64: 1>, padding = dense<[[1, 1]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<8x8x8xf32>, tensor<3x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v41:2 = sdy.manual_computation(%v1#1, %v1#1, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13, %arg14, %arg15, %arg16) in_shardings=[<@mesh, [{"x"}, {?}]>, <@mesh, [{"y"}, {"x", ?}]>, <@mesh, []>, <@mesh, [{"x", ?}, {"y", ?}]>, <@mesh, [{"x", ?}, {?}]>, <@mesh, [{"x", "y"}, {?}]>, <@mesh, []>, <@mesh, [{"x", ?}, {"y", ?}]>, <@mesh, []>, <@mesh, [{?}, {"y", ?}]>, <@mesh, [{"y"}, {?}]>, <@mesh, [{"x"}, {"y", ?}]>, <@mesh, [{?}, {"x", "y", ?}]>, <@mesh, [{"x", ?}, {"y", ?}]>] out_shardings=[<@mesh, [{"y"}, {?}]>, <@mesh, [{?}, {"y", ?}]>] manual_axes={"x", "y"} (%v8a0: tensor<4x16xf32>, %v8a1: tensor<2x8xf32>, %v8a2: tensor<i32>, %v8a3: tensor<2x8xf32>, %v8a4: tensor<4x1xi32>, %v8a5: tensor<4x16xf32>, %v8a6: tensor<i32>, %v8a7: tensor<2x16xf32>, %v8a8: tensor<i32>, %v8a9: tensor<16x1xi32>, %v8a10: tensor<16x8xf32>, %v8a11: tensor<8x1xi32>, %v8a12: tensor<8x16xf32>, %v8a13: tensor<16x1xi32>) {
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce_window"(%v8a0, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<4x16xf32>, tensor<f32>) -> (tensor<4x8xf32>)
    %v11 = "stablehlo.case"(%v8a2) ({
    %v13 = "func.call"(%v10, %v8a3, %v8a4) {callee = @f1} : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<4x1xi32>) -> (tensor<2x8xf32>)
    %v14 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v15 = "stablehlo.reduce"(%v13, %v14) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<2x8xf32>, tensor<f32>) -> (tensor<2xf32>)
    %v16 = "stablehlo.broadcast_in_dim"(%v15) {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> (tensor<2x8xf32>)
    %v17 = "stablehlo.subtract"(%v13, %v16) {} : (tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>)
    %v18 = "stablehlo.exponential"(%v17) {} : (tensor<2x8xf32>) -> (tensor<2x8xf32>)
    %v19 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v20 = "stablehlo.reduce"(%v18, %v19) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<2x8xf32>, tensor<f32>) -> (tensor<2xf32>)
    %v21 = "stablehlo.broadcast_in_dim"(%v20) {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> (tensor<2x8xf32>)
    %v22 = "stablehlo.divide"(%v18, %v21) {} : (tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>)
    %v23 = "stablehlo.reshape"(%v10) {} : (tensor<4x8xf32>) -> (tensor<2x2x8xf32>)
    %v24 = "stablehlo.negate"(%v8a5) {} : (tensor<4x16xf32>) -> (tensor<4x16xf32>)
    stablehlo.return %v24 : tensor<4x16xf32>
    }, {
    %v25 = "stablehlo.case"(%v8a6) ({
    %v26 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<2x8xi32>)
    %v27 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v28 = "stablehlo.broadcast_in_dim"(%v27) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<2x8xi32>)
    %v29 = "stablehlo.compare"(%v26, %v28) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2x8xi32>, tensor<2x8xi32>) -> (tensor<2x8xi1>)
    %v30 = "stablehlo.select"(%v29, %v8a1, %v8a3) {} : (tensor<2x8xi1>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>)
    %v31 = sdy.sharding_constraint %v8a3 <@mesh, [{}, {?}]> : tensor<2x8xf32>
    %v32 = "stablehlo.dynamic_update_slice"(%v8a5, %v8a7, %v8a8, %v8a8) {} : (tensor<4x16xf32>, tensor<2x16xf32>, tensor<i32>, tensor<i32>) -> (tensor<4x16xf32>)
    %v33 = "stablehlo.negate"(%v10) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    stablehlo.return %v33 : tensor<4x8xf32>
    }, {
    %v34 = "stablehlo.scatter"(%v8a3, %v8a9, %v8a10) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x8xf32>, tensor<16x1xi32>, tensor<16x8xf32>) -> (tensor<2x8xf32>)
    %v35 = "stablehlo.reshape"(%v10) {} : (tensor<4x8xf32>) -> (tensor<32xf32>)
    %v36 = "stablehlo.scatter"(%v8a7, %v8a11, %v8a12) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>) -> (tensor<2x16xf32>)
    %v37 = "stablehlo.negate"(%v10) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    stablehlo.return %v37 : tensor<4x8xf32>
    }) : (tensor<i32>) -> tensor<4x8xf32>
    %v38 = "stablehlo.broadcast_in_dim"(%v8a10) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<16x8xf32>) -> (tensor<16x8x8xf32>)
    %v39 = "stablehlo.gather"(%v8a10, %v8a13) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>, indices_are_sorted = false} : (tensor<16x8xf32>, tensor<16x1xi32>) -> (tensor<16x8xf32>)
    %v40 = "stablehlo.negate"(%v8a0) {} : (tensor<4x16xf32>) -> (tensor<4x16xf32>)
    stablehlo.return %v40 : tensor<4x16xf32>
    }) : (tensor<i32>) -> tensor<4x16xf32>
    sdy.return %v10, %v10 : tensor<4x8xf32>, tensor<4x8xf32>
    } : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<i32>, tensor<4x32xf32>, tensor<8x1xi32>, tensor<32x16xf32>, tensor<i32>, tensor<4x64xf32>, tensor<i32>, tensor<16x4xi32>, tensor<64x8xf32>, tensor<16x4xi32>, tensor<8x128xf32>, tensor<32x4xi32>) -> (tensor<16x8xf32>, tensor<4x32xf32>)
    %v42 = "stablehlo.slice"(%v41#1) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 16>, strides = array<i64: 1, 1>} : (tensor<4x32xf32>) -> (tensor<4x16xf32>)
    return %v42 : tensor<4x16xf32>
  }
  func.func private @f1(%arg0: tensor<4x8xf32>, %arg1: tensor<2x8xf32>, %arg2: tensor<4x1xi32>) -> (tensor<2x8xf32>) {
    %v12 = "stablehlo.scatter"(%arg1, %arg2, %arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<2x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> (tensor<2x8xf32>)
    return %v12 : tensor<2x8xf32>
  }
}
