module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {"x":(2)4, ?}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg2: tensor<8x4x32xf32>, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg4: tensor<2xf32>, %arg5: tensor<i32>, %arg6: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg7: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg8: tensor<16xf32>) -> (tensor<4xf32>, tensor<4x2xf32>, tensor<32x32xf32>) {
    %v1 = "stablehlo.concatenate"(%arg1, %arg3) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    %v3 = "func.call"(%v1) {callee = @f1} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    %v8:2 = sdy.manual_computation(%arg3, %arg4, %arg5) in_shardings=[<@mesh, [{?}]>, <@mesh, [{}]>, <@mesh, []>] out_shardings=[<@mesh, [{"y", ?}]>, <@mesh, [{"x"}]>] manual_axes={"y"} (%v4a0: tensor<4xf32>, %v4a1: tensor<2xf32>, %v4a2: tensor<i32>) {
    %v5 = "stablehlo.tanh"(%v4a0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v6 = "stablehlo.dynamic_update_slice"(%v4a0, %v4a1, %v4a2) {} : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<4xf32>)
    %v7 = "stablehlo.add"(%v5, %v5) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v6, %v6 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<4xf32>)
    %v20 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v9:3 = stablehlo.while(%v9i0 = %arg3, %v9i1 = %arg0, %v9c = %v20) : tensor<4xf32>, tensor<32x32xf32>, tensor<i32> cond {
    %v9l = stablehlo.constant dense<4> : tensor<i32>
    %v9q = stablehlo.compare LT, %v9c, %v9l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v9q : tensor<i1>
    } do {
    %v9o = stablehlo.constant dense<1> : tensor<i32>
    %v9j = stablehlo.add %v9c, %v9o : tensor<i32>
    %v10 = "stablehlo.gather"(%v9i1, %arg6) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>, indices_are_sorted = false} : (tensor<32x32xf32>, tensor<4x1xi32>) -> (tensor<4x32xf32>)
    %v17 = sdy.manual_computation(%v9i1, %v10, %arg7, %arg8) in_shardings=[<@mesh, [{"y", "x"}, {}]>, <@mesh, [{"y", ?}, {"x"}]>, <@mesh, [{"x", ?}, {"y", ?}]>, <@mesh, [{"y", "x", ?}]>] out_shardings=[<@mesh, [{?}, {}, {"y", "x", ?}]>] manual_axes={"y"} (%v11a0: tensor<16x32xf32>, %v11a1: tensor<2x32xf32>, %v11a2: tensor<16x32xf32>, %v11a3: tensor<8xf32>) {
    %v15:2 = "func.call"(%v11a1, %v11a2) {callee = @f2} : (tensor<2x32xf32>, tensor<16x32xf32>) -> (tensor<2x4x32xf32>, tensor<2x1x32xf32>)
    %v16 = "func.call"(%v11a3) {callee = @f1} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    sdy.return %v15#1 : tensor<2x1x32xf32>
    } : (tensor<32x32xf32>, tensor<4x32xf32>, tensor<16x64xf32>, tensor<16xf32>) -> (tensor<2x1x64xf32>)
    %v18 = "stablehlo.tanh"(%v9i0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v19 = "stablehlo.tanh"(%v9i1) {} : (tensor<32x32xf32>) -> (tensor<32x32xf32>)
    stablehlo.return %v18, %v19, %v9j : tensor<4xf32>, tensor<32x32xf32>, tensor<i32>
    }
    %v21 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v22 = "stablehlo.dynamic_slice"(%v8#0, %v21) {slice_sizes = array<i64: 4>} : (tensor<8xf32>, tensor<i32>) -> (tensor<4xf32>)
    return %v22, %v3, %v9#1 : tensor<4xf32>, tensor<4x2xf32>, tensor<32x32xf32>
  }
  func.func @f1(%arg0: tensor<8xf32>) -> (tensor<4x2xf32>) {
    %v2 = "stablehlo.reshape"(%arg0) {} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    return %v2 : tensor<4x2xf32>
  }
  func.func private @f2(%arg0: tensor<2x32xf32>, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<2x4x32xf32>, tensor<2x1x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"x", ?}]>}) {
    %v12 = "stablehlo.add"(%arg0, %arg0) {} : (tensor<2x32xf32>, tensor<2x32xf32>) -> (tensor<2x32xf32>)
    %v13 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x32xf32>) -> (tensor<2x4x32xf32>)
    %v14 = "stablehlo.reshape"(%arg0) {} : (tensor<2x32xf32>) -> (tensor<2x1x32xf32>)
    return %v13, %v14 : tensor<2x4x32xf32>, tensor<2x1x32xf32>
  }
}
