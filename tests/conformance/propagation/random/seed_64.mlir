module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<16x16x32xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4, ?}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg3: tensor<8x16xf32>, %arg4: tensor<128x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg5: tensor<i32>, %arg6: tensor<i32>, %arg7: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg8: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %arg9: tensor<64x16xf32>, %arg10: tensor<i32>) -> (tensor<16x16xf32>, tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) {
    %v3:2 = sdy.manual_computation(%arg2, %arg3, %arg4) in_shardings=[<@mesh, [{?}]>, <@mesh, [{?}, {}]>, <@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>] manual_axes={"x"} (%v1a0: tensor<4xf32>, %v1a1: tensor<8x16xf32>, %v1a2: tensor<16x1xi32>) {
    %v2 = "stablehlo.gather"(%v1a1, %v1a2) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>, indices_are_sorted = false} : (tensor<8x16xf32>, tensor<16x1xi32>) -> (tensor<16x16xf32>)
    sdy.return %v2, %v2 : tensor<16x16xf32>, tensor<16x16xf32>
    } : (tensor<4xf32>, tensor<8x16xf32>, tensor<128x1xi32>) -> (tensor<16x16xf32>, tensor<128x16xf32>)
    %v4 = "stablehlo.case"(%arg5) ({
    %v5 = "stablehlo.add"(%arg0, %arg0) {} : (tensor<16x16x32xf32>, tensor<16x16x32xf32>) -> (tensor<16x16x32xf32>)
    %v6 = "stablehlo.case"(%arg6) ({
    %v7 = "stablehlo.sort"(%arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 2 : i64, is_stable = true} : (tensor<16x16x32xf32>) -> (tensor<16x16x32xf32>)
    %v9 = "func.call"(%arg1, %v3#1, %arg1) {callee = @f1} : (tensor<8xf32>, tensor<128x16xf32>, tensor<8xf32>) -> (tensor<16xf32>)
    %v10 = sdy.propagation_barrier %arg3 allowed_direction=BACKWARD : tensor<8x16xf32>
    %v11 = "stablehlo.negate"(%v3#1) {} : (tensor<128x16xf32>) -> (tensor<128x16xf32>)
    stablehlo.return %v11 : tensor<128x16xf32>
    }, {
    %v12 = sdy.sharding_constraint %arg1 <@mesh, [{"x":(2)4, ?}]> : tensor<8xf32>
    %v13 = "stablehlo.negate"(%v3#1) {} : (tensor<128x16xf32>) -> (tensor<128x16xf32>)
    stablehlo.return %v13 : tensor<128x16xf32>
    }) : (tensor<i32>) -> tensor<128x16xf32>
    %v14 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v15 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v16 = "stablehlo.dynamic_update_slice"(%arg3, %arg7, %v14, %v15) {} : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<i32>, tensor<i32>) -> (tensor<8x16xf32>)
    %v17 = "stablehlo.negate"(%arg8) {} : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
    stablehlo.return %v17 : tensor<16x16xf32>
    }, {
    %v18 = "stablehlo.reshape"(%arg1) {} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    %v19 = "stablehlo.cholesky"(%v3#0) {lower = true} : (tensor<16x16xf32>) -> (tensor<16x16xf32>)
    %v20 = "stablehlo.dynamic_update_slice"(%v3#1, %arg9, %arg10, %arg10) {} : (tensor<128x16xf32>, tensor<64x16xf32>, tensor<i32>, tensor<i32>) -> (tensor<128x16xf32>)
    stablehlo.return %v19 : tensor<16x16xf32>
    }) : (tensor<i32>) -> tensor<16x16xf32>
    return %v4, %v3#0 : tensor<16x16xf32>, tensor<16x16xf32>
  }
  func.func @f1(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<128x16xf32>, %arg2: tensor<8xf32>) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
    %v8 = "stablehlo.concatenate"(%arg0, %arg2) {dimension = 0 : i64} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<16xf32>)
    return %v8 : tensor<16xf32>
  }
}
