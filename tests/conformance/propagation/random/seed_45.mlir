module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z"}]>}, %arg3: tensor<32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", ?}, {?}]>}, %arg4: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z"}]>}) -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z", ?}]>}, tensor<16xf32>, tensor<32xf32>) {
    %v5:2 = sdy.manual_computation(%arg1, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{}]>, <@mesh, [{?}, {}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{"y", ?}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%v1a0: tensor<8xf32>, %v1a1: tensor<8x8xf32>, %v1a2: tensor<16x1xi32>, %v1a3: tensor<16x8xf32>) {
    %v2 = sdy.sharding_constraint %v1a0 <@mesh, [{}]> : tensor<8xf32>
    %v3 = sdy.sharding_constraint %v1a0 <@mesh, [{"y", "z"}]> : tensor<8xf32>
    %v4 = "stablehlo.scatter"(%v1a1, %v1a2, %v1a3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x8xf32>, tensor<16x1xi32>, tensor<16x8xf32>) -> (tensor<8x8xf32>)
    sdy.return %v4, %v2 : tensor<8x8xf32>, tensor<8xf32>
    } : (tensor<8xf32>, tensor<8x8xf32>, tensor<32x1xi32>, tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<16xf32>)
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.pad"(%v5#1, %v6) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 16>, interior_padding = array<i64: 0>} : (tensor<16xf32>, tensor<f32>) -> (tensor<32xf32>)
    %v18:2 = "func.call"(%arg0, %v5#1, %arg0) {callee = @f1} : (tensor<4x8xf32>, tensor<16xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %v18#1, %v5#1, %v7 : tensor<4x8xf32>, tensor<16xf32>, tensor<32xf32>
  }
  func.func @f1(%arg0: tensor<4x8xf32>, %arg1: tensor<16xf32>, %arg2: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %v8 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<4x8xi32>)
    %v9 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x8xi32>)
    %v11 = "stablehlo.compare"(%v8, %v10) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<4x8xi1>)
    %v12 = "stablehlo.select"(%v11, %arg0, %arg0) {} : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v13 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x8xi32>)
    %v14 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v15 = "stablehlo.broadcast_in_dim"(%v14) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x8xi32>)
    %v16 = "stablehlo.compare"(%v13, %v15) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<4x8xi1>)
    %v17 = "stablehlo.select"(%v16, %v12, %arg2) {} : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %v17, %v12 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
