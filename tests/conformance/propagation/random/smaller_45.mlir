module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg4: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg5: tensor<8xf32>) -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {}]>}) {
    %v5:2 = sdy.manual_computation(%arg1, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{}]>, <@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}]>] manual_axes={"x"} (%v1a0: tensor<4xf32>, %v1a1: tensor<8x4xf32>, %v1a2: tensor<4x1xi32>, %v1a3: tensor<4x4xf32>) {
    %v2 = sdy.sharding_constraint %v1a0 <@mesh, [{}]> : tensor<4xf32>
    %v3 = sdy.sharding_constraint %v2 <@mesh, [{}]> : tensor<4xf32>
    %v4 = "stablehlo.scatter"(%v1a1, %v1a2, %v1a3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> (tensor<8x4xf32>)
    sdy.return %v4, %v3 : tensor<8x4xf32>, tensor<4xf32>
    } : (tensor<4xf32>, tensor<8x4xf32>, tensor<4x1xi32>, tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
    %v6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v7 = "stablehlo.pad"(%v5#1, %v6) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 4>, interior_padding = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<8xf32>)
    %v18 = "func.call"(%arg0, %arg5, %arg0) {callee = @f1} : (tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %v18 : tensor<4x8xf32>
  }
  func.func private @f1(%arg0: tensor<4x8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %v8 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x8xi32>)
    %v9 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x8xi32>)
    %v11 = "stablehlo.compare"(%v8, %v10) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<4x8xi1>)
    %v12 = "stablehlo.select"(%v11, %arg0, %arg0) {} : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v13 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x8xi32>)
    %v14 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v15 = "stablehlo.broadcast_in_dim"(%v14) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x8xi32>)
    %v16 = "stablehlo.compare"(%v13, %v15) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<4x8xi1>)
    %v17 = "stablehlo.select"(%v16, %v12, %arg2) {} : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %v17 : tensor<4x8xf32>
  }
}
