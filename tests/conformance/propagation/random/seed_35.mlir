module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x":(1)2, ?}, {?}]>}, %arg1: tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"y"}]>}, %arg2: tensor<8x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg3: tensor<i32>, %arg4: tensor<8x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y"}, {}]>}, %arg5: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"y"}]>}, %arg6: tensor<8x16x1xi32>, %arg7: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}, %arg8: tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}, {}]>}, %arg9: tensor<i32>, %arg10: tensor<32x8xi32>) -> (tensor<8x16x4xf32>, tensor<8x4x8xf32>, tensor<8x8x4xf32>) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x8x8xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v2 = "stablehlo.transpose"(%v1) {permutation = array<i64: 0, 2, 1>} : (tensor<8x8x4xf32>) -> (tensor<8x4x8xf32>)
    %v20 = "func.call"(%v1, %arg2, %arg3, %arg4, %arg5, %arg6) {callee = @f1} : (tensor<8x8x4xf32>, tensor<8x4x8xf32>, tensor<i32>, tensor<8x4x8xf32>, tensor<8x8x16xf32>, tensor<8x16x1xi32>) -> (tensor<8x4x8xf32>)
    %v21:2 = "func.call"(%arg1, %v20) {callee = @f3} : (tensor<8x8x4xf32>, tensor<8x4x8xf32>) -> (tensor<8x8x4xf32>, tensor<8x4x8xf32>)
    %v41 = sdy.manual_computation(%arg4, %v1, %arg7, %arg8, %arg9, %arg10) in_shardings=[<@mesh, [{"x", ?}, {}, {?}]>, <@mesh, [{"y", ?}, {}, {?}]>, <@mesh, [{}, {"y", "x", ?}, {}]>, <@mesh, [{}, {"x"}, {?}]>, <@mesh, []>, <@mesh, [{"y", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}, {}]>] manual_axes={"y"} (%v22a0: tensor<8x4x8xf32>, %v22a1: tensor<4x8x4xf32>, %v22a2: tensor<8x8x4xf32>, %v22a3: tensor<8x8x4xf32>, %v22a4: tensor<i32>, %v22a5: tensor<16x8xi32>) {
    %v23 = "func.call"(%v22a2, %v22a3) {callee = @f2} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v24 = sdy.sharding_constraint %v22a3 <@mesh, [{"x", ?}, {}, {}]> : tensor<8x8x4xf32>
    %v40 = sdy.manual_computation(%v24, %v22a2, %v22a4, %v22a5) in_shardings=[<@mesh, [{?}, {"x"}, {?}]>, <@mesh, [{"x"}, {?}, {?}]>, <@mesh, []>, <@mesh, [{?}, {"x"}]>] out_shardings=[<@mesh, [{?}, {"x"}, {}]>] manual_axes={"x"} (%v25a0: tensor<8x1x4xf32>, %v25a1: tensor<1x8x4xf32>, %v25a2: tensor<i32>, %v25a3: tensor<16x1xi32>) {
    %v28 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v26:2 = stablehlo.while(%v26i0 = %v25a1, %v26c = %v28) : tensor<1x8x4xf32>, tensor<i32> cond {
    %v26l = stablehlo.constant dense<4> : tensor<i32>
    %v26q = stablehlo.compare LT, %v26c, %v26l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v26q : tensor<i1>
    } do {
    %v26o = stablehlo.constant dense<1> : tensor<i32>
    %v26j = stablehlo.add %v26c, %v26o : tensor<i32>
    %v27 = "stablehlo.sort"(%v26i0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<1x8x4xf32>) -> (tensor<1x8x4xf32>)
    stablehlo.return %v27, %v26j : tensor<1x8x4xf32>, tensor<i32>
    }
    %v29 = "stablehlo.case"(%v25a2) ({
    %v30 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v31 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v32 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v33 = "stablehlo.dynamic_slice"(%v25a1, %v30, %v31, %v32) {slice_sizes = array<i64: 1, 8, 4>} : (tensor<1x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<1x8x4xf32>)
    stablehlo.return %v33 : tensor<1x8x4xf32>
    }, {
    %v34 = sdy.sharding_constraint %v25a0 <@mesh, [{?}, {?}, {?}]> : tensor<8x1x4xf32>
    %v35 = "stablehlo.multiply"(%v25a0, %v25a0) {} : (tensor<8x1x4xf32>, tensor<8x1x4xf32>) -> (tensor<8x1x4xf32>)
    %v36 = "stablehlo.gather"(%v25a1, %v25a3) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8, 4>, indices_are_sorted = false} : (tensor<1x8x4xf32>, tensor<16x1xi32>) -> (tensor<16x8x4xf32>)
    %v37 = "stablehlo.negate"(%v26#0) {} : (tensor<1x8x4xf32>) -> (tensor<1x8x4xf32>)
    stablehlo.return %v37 : tensor<1x8x4xf32>
    }) : (tensor<i32>) -> tensor<1x8x4xf32>
    %v38 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v39 = "stablehlo.reduce"(%v29, %v38) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0, 1>} : (tensor<1x8x4xf32>, tensor<f32>) -> (tensor<4xf32>)
    sdy.return %v29 : tensor<1x8x4xf32>
    } : (tensor<8x8x4xf32>, tensor<8x8x4xf32>, tensor<i32>, tensor<16x8xi32>) -> (tensor<1x64x4xf32>)
    sdy.return %v23 : tensor<8x8x4xf32>
    } : (tensor<8x4x8xf32>, tensor<8x8x4xf32>, tensor<8x16x4xf32>, tensor<8x8x4xf32>, tensor<i32>, tensor<32x8xi32>) -> (tensor<8x8x4xf32>)
    %v42 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v43 = "stablehlo.reduce"(%arg7, %v42) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x16x4xf32>, tensor<f32>) -> (tensor<8x16xf32>)
    %v44 = "stablehlo.broadcast_in_dim"(%v43) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> (tensor<8x16x4xf32>)
    %v45 = "stablehlo.subtract"(%arg7, %v44) {} : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> (tensor<8x16x4xf32>)
    %v46 = "stablehlo.exponential"(%v45) {} : (tensor<8x16x4xf32>) -> (tensor<8x16x4xf32>)
    %v47 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v48 = "stablehlo.reduce"(%v46, %v47) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x16x4xf32>, tensor<f32>) -> (tensor<8x16xf32>)
    %v49 = "stablehlo.broadcast_in_dim"(%v48) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> (tensor<8x16x4xf32>)
    %v50 = "stablehlo.divide"(%v46, %v49) {} : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> (tensor<8x16x4xf32>)
    return %v50, %v2, %v41 : tensor<8x16x4xf32>, tensor<8x4x8xf32>, tensor<8x8x4xf32>
  }
  func.func private @f2(%arg0: tensor<8x8x4xf32>, %arg1: tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>) {
    %v4 = "stablehlo.maximum"(%arg0, %arg0) {} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v5 = "stablehlo.maximum"(%v4, %arg1) {} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    return %v5 : tensor<8x8x4xf32>
  }
  func.func private @f3(%arg0: tensor<8x8x4xf32>, %arg1: tensor<8x4x8xf32>) -> (tensor<8x8x4xf32>, tensor<8x4x8xf32>) {
    %v10:2 = "stablehlo.optimization_barrier"(%arg1, %arg0) {} : (tensor<8x4x8xf32>, tensor<8x8x4xf32>) -> (tensor<8x4x8xf32>, tensor<8x8x4xf32>)
    return %v10#1, %v10#0 : tensor<8x8x4xf32>, tensor<8x4x8xf32>
  }
  func.func private @f1(%arg0: tensor<8x8x4xf32>, %arg1: tensor<8x4x8xf32>, %arg2: tensor<i32>, %arg3: tensor<8x4x8xf32>, %arg4: tensor<8x8x16xf32>, %arg5: tensor<8x16x1xi32>) -> (tensor<8x4x8xf32>) {
    %v3 = "stablehlo.case"(%arg2) ({
    %v6 = "func.call"(%arg0, %arg0) {callee = @f2} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v7 = "stablehlo.reverse"(%v6) {dimensions = array<i64: 2>} : (tensor<8x8x4xf32>) -> (tensor<8x8x4xf32>)
    %v8 = "stablehlo.concatenate"(%v7, %arg0) {dimension = 0 : i64} : (tensor<8x8x4xf32>, tensor<8x8x4xf32>) -> (tensor<16x8x4xf32>)
    %v9 = "stablehlo.negate"(%arg3) {} : (tensor<8x4x8xf32>) -> (tensor<8x4x8xf32>)
    stablehlo.return %v9 : tensor<8x4x8xf32>
    }, {
    %v11:2 = "func.call"(%arg0, %arg1) {callee = @f3} : (tensor<8x8x4xf32>, tensor<8x4x8xf32>) -> (tensor<8x8x4xf32>, tensor<8x4x8xf32>)
    %v12 = "stablehlo.dot_general"(%arg3, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x4x8xf32>, tensor<8x8x16xf32>) -> (tensor<8x4x16xf32>)
    %v13 = "stablehlo.gather"(%arg1, %arg5) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 8>, indices_are_sorted = false} : (tensor<8x4x8xf32>, tensor<8x16x1xi32>) -> (tensor<8x16x8xf32>)
    stablehlo.return %v11#1 : tensor<8x4x8xf32>
    }) : (tensor<i32>) -> tensor<8x4x8xf32>
    %v19 = sdy.manual_computation(%arg3) in_shardings=[<@mesh, [{"x", ?}, {}, {"y"}]>] out_shardings=[<@mesh, [{"y", ?}]>] manual_axes={"y"} (%v14a0: tensor<8x4x4xf32>) {
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.reduce"(%v14a0, %v15) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0, 2>} : (tensor<8x4x4xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v17 = "stablehlo.multiply"(%v16, %v16) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    %v18:2 = "stablehlo.optimization_barrier"(%v17, %v14a0) {} : (tensor<4xf32>, tensor<8x4x4xf32>) -> (tensor<4xf32>, tensor<8x4x4xf32>)
    sdy.return %v16 : tensor<4xf32>
    } : (tensor<8x4x8xf32>) -> (tensor<8xf32>)
    return %v3 : tensor<8x4x8xf32>
  }
}
