module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}, %arg1: tensor<8xf32>, %arg2: tensor<32x4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p1, {}, {?}]>}, %arg3: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y", ?}]>}, %arg4: tensor<32x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {"x", "y", ?}]>}, %arg5: tensor<4x32xf32>, %arg6: tensor<32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}, {?}p2]>}) -> (tensor<32x32x8xf32>, tensor<16x16xf32>, tensor<32x4x8xf32>, tensor<32x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<16x16xf32>)
    %v2 = "stablehlo.dot_general"(%arg2, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<32x4x32xf32>, tensor<32x32x8xf32>) -> (tensor<32x4x8xf32>)
    %v3 = sdy.sharding_constraint %v2 <@mesh, [{}, {"x", ?}, {?}], replicated={"y"}> : tensor<32x4x8xf32>
    %v11:2 = "func.call"(%arg2, %arg0, %arg2, %arg5) {callee = @f1} : (tensor<32x4x32xf32>, tensor<16x16xf32>, tensor<32x4x32xf32>, tensor<4x32xf32>) -> (tensor<32x32x32xf32>, tensor<4x32xf32>)
    %v19 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v12:2 = stablehlo.while(%v12i0 = %arg4, %v12c = %v19) : tensor<32x32x8xf32>, tensor<i32> cond {
    %v12l = stablehlo.constant dense<4> : tensor<i32>
    %v12q = stablehlo.compare LT, %v12c, %v12l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v12q : tensor<i1>
    } do {
    %v12o = stablehlo.constant dense<1> : tensor<i32>
    %v12j = stablehlo.add %v12c, %v12o : tensor<i32>
    %v13 = "stablehlo.scatter"(%v12i0, %arg6, %v12i0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x32x8xf32>, tensor<32x1xi32>, tensor<32x32x8xf32>) -> (tensor<32x32x8xf32>)
    %v18:2 = sdy.manual_computation(%v13, %v13) in_shardings=[<@mesh, [{?}, {"x", "y", ?}, {}]>, <@mesh, [{"y", ?}, {}, {}]>] out_shardings=[<@mesh, [{"x", "y", ?}, {}, {}, {?}]>, <@mesh, [{"y"}, {?}]>] manual_axes={"x"} (%v14a0: tensor<32x16x8xf32>, %v14a1: tensor<32x32x8xf32>) {
    %v15 = "stablehlo.reshape"(%v14a1) {} : (tensor<32x32x8xf32>) -> (tensor<32x8x4x8xf32>)
    %v16 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v17 = "stablehlo.reduce"(%v15, %v16) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2, 3>} : (tensor<32x8x4x8xf32>, tensor<f32>) -> (tensor<32x8xf32>)
    sdy.return %v15, %v17 : tensor<32x8x4x8xf32>, tensor<32x8xf32>
    } : (tensor<32x32x8xf32>, tensor<32x32x8xf32>) -> (tensor<64x8x4x8xf32>, tensor<32x8xf32>)
    stablehlo.return %v13, %v12j : tensor<32x32x8xf32>, tensor<i32>
    }
    return %v12#0, %v1, %v2, %v11#0 : tensor<32x32x8xf32>, tensor<16x16xf32>, tensor<32x4x8xf32>, tensor<32x32x32xf32>
  }
  func.func private @f1(%arg0: tensor<32x4x32xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<32x4x32xf32>, %arg3: tensor<4x32xf32>) -> (tensor<32x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, tensor<4x32xf32>) {
    %v4 = "stablehlo.add"(%arg0, %arg2) {} : (tensor<32x4x32xf32>, tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v5 = "stablehlo.dot_general"(%arg0, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<32x4x32xf32>, tensor<4x32xf32>) -> (tensor<32x32x32xf32>)
    %v6 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x32xi32>)
    %v7 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v8 = "stablehlo.broadcast_in_dim"(%v7) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x32xi32>)
    %v9 = "stablehlo.compare"(%v6, %v8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x32xi32>, tensor<4x32xi32>) -> (tensor<4x32xi1>)
    %v10 = "stablehlo.select"(%v9, %arg3, %arg3) {} : (tensor<4x32xi1>, tensor<4x32xf32>, tensor<4x32xf32>) -> (tensor<4x32xf32>)
    return %v5, %v10 : tensor<32x32x32xf32>, tensor<4x32xf32>
  }
}
