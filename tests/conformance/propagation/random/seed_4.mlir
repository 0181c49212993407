module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<16x16x8xf32>, %arg1: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg2: tensor<i32>, %arg3: tensor<16x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {}]>}, %arg4: tensor<16x16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}, {}]>}, %arg5: tensor<16x1xi32>, %arg6: tensor<4x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}, {}]>}, %arg7: tensor<8x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) -> (tensor<8x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y", ?}]>}) {
    %v3:2 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{?}, {}, {?}]>, <@mesh, [{}, {?}]>] out_shardings=[<@mesh, [{"x":(1)2, ?}, {?}, {"x":(2)2, ?}]>, <@mesh, [{?}, {?}, {}]>] manual_axes={"y"} (%v1a0: tensor<16x16x8xf32>, %v1a1: tensor<8x1xi32>) {
    %v2 = "stablehlo.gather"(%v1a0, %v1a1) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 8>, indices_are_sorted = false} : (tensor<16x16x8xf32>, tensor<8x1xi32>) -> (tensor<8x16x8xf32>)
    sdy.return %v2, %v2 : tensor<8x16x8xf32>, tensor<8x16x8xf32>
    } : (tensor<16x16x8xf32>, tensor<8x1xi32>) -> (tensor<8x16x8xf32>, tensor<8x16x8xf32>)
    %v4 = "stablehlo.case"(%arg2) ({
    %v13:2 = "func.call"(%arg3, %arg3, %arg4, %arg5, %arg6) {callee = @f1} : (tensor<16x16x8xf32>, tensor<16x16x8xf32>, tensor<16x16x4xf32>, tensor<16x1xi32>, tensor<4x4x16xf32>) -> (tensor<256x8xf32>, tensor<64x8x4xf32>)
    %v14 = "stablehlo.negate"(%v3#1) {} : (tensor<8x16x8xf32>) -> (tensor<8x16x8xf32>)
    stablehlo.return %v14 : tensor<8x16x8xf32>
    }, {
    %v15 = "stablehlo.negate"(%arg7) {} : (tensor<8x16x8xf32>) -> (tensor<8x16x8xf32>)
    stablehlo.return %v15 : tensor<8x16x8xf32>
    }) : (tensor<i32>) -> tensor<8x16x8xf32>
    return %v4 : tensor<8x16x8xf32>
  }
  func.func private @f1(%arg0: tensor<16x16x8xf32>, %arg1: tensor<16x16x8xf32>, %arg2: tensor<16x16x4xf32>, %arg3: tensor<16x1xi32>, %arg4: tensor<4x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x":(1)2, ?}]>}) -> (tensor<256x8xf32>, tensor<64x8x4xf32>) {
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v8 = "stablehlo.dynamic_update_slice"(%arg1, %arg2, %v5, %v6, %v7) {} : (tensor<16x16x8xf32>, tensor<16x16x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x16x8xf32>)
    %v11 = sdy.manual_computation(%arg2, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{}, {"x", ?}, {"y", ?}]>, <@mesh, [{?}, {"x"}, {?}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{?}, {?}, {"x", ?}]>] out_shardings=[<@mesh, [{"x"}, {"y"}, {}]>] manual_axes={"x", "y"} (%v9a0: tensor<16x4x2xf32>, %v9a1: tensor<16x4x4xf32>, %v9a2: tensor<4x1xi32>, %v9a3: tensor<4x4x4xf32>) {
    %v10 = "stablehlo.scatter"(%v9a1, %v9a2, %v9a3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x4x4xf32>, tensor<4x1xi32>, tensor<4x4x4xf32>) -> (tensor<16x4x4xf32>)
    sdy.return %v10 : tensor<16x4x4xf32>
    } : (tensor<16x16x4xf32>, tensor<16x16x4xf32>, tensor<16x1xi32>, tensor<4x4x16xf32>) -> (tensor<64x8x4xf32>)
    %v12 = "stablehlo.reshape"(%v8) {} : (tensor<16x16x8xf32>) -> (tensor<256x8xf32>)
    return %v12, %v11 : tensor<256x8xf32>, tensor<64x8x4xf32>
  }
}
