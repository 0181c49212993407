module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "z", "x"}, {}]>}, %arg1: tensor<8x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x", "y"}, {}, {?}]>}, %arg2: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg3: tensor<i32>, %arg4: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}, {}], replicated={"z"}>}, %arg5: tensor<16x4x8xf32>, %arg6: tensor<8x4x8xf32>, %arg7: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", "z", ?}, {}]>}) -> (tensor<16x8xf32>) {
    %v1 = "stablehlo.gather"(%arg1, %arg2) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 8>, indices_are_sorted = false} : (tensor<8x4x8xf32>, tensor<8x1xi32>) -> (tensor<8x4x8xf32>)
    %v2 = "stablehlo.case"(%arg3) ({
    %v3 = "stablehlo.dot_general"(%arg1, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x4x8xf32>, tensor<4x16xf32>) -> (tensor<8x8x16xf32>)
    %v4 = "stablehlo.negate"(%arg0) {} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v5 = "stablehlo.negate"(%v1) {} : (tensor<8x4x8xf32>) -> (tensor<8x4x8xf32>)
    stablehlo.return %v5 : tensor<8x4x8xf32>
    }, {
    %v6 = sdy.sharding_constraint %arg0 <@mesh, [{?}, {?}]> : tensor<16x8xf32>
    %v11 = sdy.manual_computation(%arg1, %arg5) in_shardings=[<@mesh, [{?}, {?}, {"x", ?}]>, <@mesh, [{"x", "z"}, {?}, {"y", ?}]>] out_shardings=[<@mesh, [{"x", "y", "z"}, {}]>] manual_axes={"x", "y"} (%v7a0: tensor<8x4x4xf32>, %v7a1: tensor<8x4x4xf32>) {
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10:2 = "stablehlo.reduce"(%v7a0, %v7a1, %v8, %v9) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<8x4x4xf32>, tensor<8x4x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    sdy.return %v10#1 : tensor<8x4xf32>
    } : (tensor<8x4x8xf32>, tensor<16x4x8xf32>) -> (tensor<32x4xf32>)
    %v12 = "stablehlo.negate"(%arg6) {} : (tensor<8x4x8xf32>) -> (tensor<8x4x8xf32>)
    stablehlo.return %v12 : tensor<8x4x8xf32>
    }) : (tensor<i32>) -> tensor<8x4x8xf32>
    %v13 = "stablehlo.maximum"(%arg0, %arg7) {} : (tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>)
    return %v13 : tensor<16x8xf32>
  }
}
