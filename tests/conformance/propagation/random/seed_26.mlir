module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<8x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {?}]>}, %arg1: tensor<8x16x16xf32>, %arg2: tensor<16x1xi32>, %arg3: tensor<16x4xf32>, %arg4: tensor<64x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg5: tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {}]>}, %arg6: tensor<8x1xf32>) -> (tensor<16x1xf32>, tensor<8x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {}, {?}]>}, tensor<8x16x16xf32>) {
    %v1 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 8, 16, 8>, strides = array<i64: 1, 1, 1>} : (tensor<8x16x16xf32>) -> (tensor<8x16x8xf32>)
    %v6:2 = "func.call"(%arg1, %arg2) {callee = @f1} : (tensor<8x16x16xf32>, tensor<16x1xi32>) -> (tensor<8x16x16xf32>, tensor<16x16x16xf32>)
    %v7 = "stablehlo.dot_general"(%arg0, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<8x16x16xf32>, tensor<16x4xf32>) -> (tensor<8x16x4xf32>)
    %v8 = "stablehlo.maximum"(%v6#0, %arg1) {} : (tensor<8x16x16xf32>, tensor<8x16x16xf32>) -> (tensor<8x16x16xf32>)
    %v14 = sdy.manual_computation(%arg3, %arg4, %arg5, %arg6) in_shardings=[<@mesh, [{"y", ?}, {"x", ?}]>, <@mesh, [{"x", "y", ?}, {}]>, <@mesh, [{}, {"x"}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{?}, {}]>] manual_axes={"x"} (%v9a0: tensor<16x1xf32>, %v9a1: tensor<16x1xf32>, %v9a2: tensor<8x1xi32>, %v9a3: tensor<8x1xf32>) {
    %v10:2 = "stablehlo.sort"(%v9a0, %v9a0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<16x1xf32>, tensor<16x1xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>)
    %v11 = "stablehlo.multiply"(%v10#1, %v9a1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], replicated={"y"}>]>} : (tensor<16x1xf32>, tensor<16x1xf32>) -> (tensor<16x1xf32>)
    %v13:2 = "func.call"(%v9a0, %v9a2, %v9a3) {callee = @f2} : (tensor<16x1xf32>, tensor<8x1xi32>, tensor<8x1xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>)
    sdy.return %v13#1 : tensor<16x1xf32>
    } : (tensor<16x4xf32>, tensor<64x1xf32>, tensor<8x4xi32>, tensor<8x1xf32>) -> (tensor<16x1xf32>)
    return %v14, %v6#0, %v8 : tensor<16x1xf32>, tensor<8x16x16xf32>, tensor<8x16x16xf32>
  }
  func.func private @f1(%arg0: tensor<8x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {"y":(2)2}]>}, %arg1: tensor<16x1xi32>) -> (tensor<8x16x16xf32>, tensor<16x16x16xf32>) {
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.reduce"(%arg0, %v2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<8x16x16xf32>, tensor<f32>) -> (tensor<8x16xf32>)
    %v4:2 = "stablehlo.sort"(%arg0, %arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8x16x16xf32>, tensor<8x16x16xf32>) -> (tensor<8x16x16xf32>, tensor<8x16x16xf32>)
    %v5 = "stablehlo.gather"(%v4#0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 16>, indices_are_sorted = false} : (tensor<8x16x16xf32>, tensor<16x1xi32>) -> (tensor<16x16x16xf32>)
    return %v4#1, %v5 : tensor<8x16x16xf32>, tensor<16x16x16xf32>
  }
  func.func private @f2(%arg0: tensor<16x1xf32>, %arg1: tensor<8x1xi32>, %arg2: tensor<8x1xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %v12 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x1xf32>, tensor<8x1xi32>, tensor<8x1xf32>) -> (tensor<16x1xf32>)
    return %v12, %v12 : tensor<16x1xf32>, tensor<16x1xf32>
  }
}
