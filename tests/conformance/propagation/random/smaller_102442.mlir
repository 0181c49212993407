module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg1: tensor<8x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"y", "x"}]>}, %arg2: tensor<4x1xi32>, %arg3: tensor<4x4x16xf32>) -> (tensor<16x4x16xf32>) {
    %v12 = sdy.manual_computation(%arg1, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{"y"}, {}, {}]>, <@mesh, [{"y"}, {}, {}]>, <@mesh, [{"y"}, {}]>, <@mesh, [{}, {"y"}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"x"} (%v1a0: tensor<8x4x16xf32>, %v1a1: tensor<8x4x16xf32>, %v1a2: tensor<4x1xi32>, %v1a3: tensor<4x4x16xf32>) {
    %v9 = "func.call"(%v1a1, %v1a2, %v1a3) {callee = @f1} : (tensor<8x4x16xf32>, tensor<4x1xi32>, tensor<4x4x16xf32>) -> (tensor<8x4x16xf32>)
    %v10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v11 = "stablehlo.pad"(%v9, %v10) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 8, 0, 0>, interior_padding = array<i64: 0, 0, 0>} : (tensor<8x4x16xf32>, tensor<f32>) -> (tensor<16x4x16xf32>)
    sdy.return %v11 : tensor<16x4x16xf32>
    } : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x1xi32>, tensor<4x4x16xf32>) -> (tensor<16x4x16xf32>)
    %v13 = "stablehlo.tanh"(%v12) {} : (tensor<16x4x16xf32>) -> (tensor<16x4x16xf32>)
    return %v13 : tensor<16x4x16xf32>
  }
  func.func private @f2(%arg0: tensor<8x4x16xf32>, %arg1: tensor<8x4x16xf32>, %arg2: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<4x4x16xf32>) -> (tensor<8x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}, {}]>}) {
    %v2 = "stablehlo.add"(%arg1, %arg1) {} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>) -> (tensor<8x4x16xf32>)
    %v3 = "stablehlo.scatter"(%v2, %arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): stablehlo.return %q0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4x16xf32>, tensor<4x1xi32>, tensor<4x4x16xf32>) -> (tensor<8x4x16xf32>)
    return %v3 : tensor<8x4x16xf32>
  }
  func.func private @f3(%arg0: tensor<8x4x16xf32>) -> (tensor<4x2x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}, {}]>}) {
    %v5 = sdy.propagation_barrier %arg0 allowed_direction=NONE : tensor<8x4x16xf32>
    %v6 = "stablehlo.reshape"(%arg0) {} : (tensor<8x4x16xf32>) -> (tensor<4x2x4x16xf32>)
    return %v6 : tensor<4x2x4x16xf32>
  }
  func.func private @f1(%arg0: tensor<8x4x16xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<4x4x16xf32>) -> (tensor<8x4x16xf32>) {
    %v4 = "func.call"(%arg0, %arg0, %arg1, %arg2) {callee = @f2} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x1xi32>, tensor<4x4x16xf32>) -> (tensor<8x4x16xf32>)
    %v7 = "func.call"(%v4) {callee = @f3} : (tensor<8x4x16xf32>) -> (tensor<4x2x4x16xf32>)
    %v8 = "stablehlo.concatenate"(%v7, %v7) {dimension = 0 : i64} : (tensor<4x2x4x16xf32>, tensor<4x2x4x16xf32>) -> (tensor<8x2x4x16xf32>)
    return %v4 : tensor<8x4x16xf32>
  }
}
