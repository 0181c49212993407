module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<i32>, %arg2: tensor<8xf32>, %arg3: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg4: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg5: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> (tensor<16xf32>) {
    %v1 = "stablehlo.case"(%arg1) ({
    %v6 = sdy.manual_computation(%arg0, %arg0, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{"y"}]>, <@mesh, [{"y", ?}]>, <@mesh, [{"y", "x":(1)2}]>, <@mesh, [{"y", ?}, {"x", ?}]>, <@mesh, [{"y", ?}, {}]>] out_shardings=[<@mesh, [{"x", ?}, {"y", ?}]>] manual_axes={"y"} (%v2a0: tensor<8xf32>, %v2a1: tensor<8xf32>, %v2a2: tensor<4xf32>, %v2a3: tensor<8x8xf32>, %v2a4: tensor<8x1xi32>) {
    %v3 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.dynamic_update_slice"(%v2a0, %v2a2, %v3) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    %v5 = "stablehlo.scatter"(%v2a3, %v2a4, %v2a3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x8xf32>, tensor<8x1xi32>, tensor<8x8xf32>) -> (tensor<8x8xf32>)
    sdy.return %v5 : tensor<8x8xf32>
    } : (tensor<16xf32>, tensor<16xf32>, tensor<8xf32>, tensor<16x8xf32>, tensor<16x1xi32>) -> (tensor<8x16xf32>)
    %v7 = "stablehlo.negate"(%arg5) {} : (tensor<16xf32>) -> (tensor<16xf32>)
    stablehlo.return %v7 : tensor<16xf32>
    }, {
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.reduce"(%arg3, %v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<16x8xf32>, tensor<f32>) -> (tensor<16xf32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64: 0>} : (tensor<16xf32>) -> (tensor<16x8xf32>)
    %v11 = "stablehlo.subtract"(%arg3, %v10) {} : (tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v12 = "stablehlo.exponential"(%v11) {} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v13 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v14 = "stablehlo.reduce"(%v12, %v13) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<16x8xf32>, tensor<f32>) -> (tensor<16xf32>)
    %v15 = "stablehlo.broadcast_in_dim"(%v14) {broadcast_dimensions = array<i64: 0>} : (tensor<16xf32>) -> (tensor<16x8xf32>)
    %v16 = "stablehlo.divide"(%v12, %v15) {} : (tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v17 = "stablehlo.negate"(%arg0) {} : (tensor<16xf32>) -> (tensor<16xf32>)
    stablehlo.return %v17 : tensor<16xf32>
    }) : (tensor<i32>) -> tensor<16xf32>
    %v18 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v19 = "stablehlo.reduce"(%arg2, %v18) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8xf32>, tensor<f32>) -> (tensor<f32>)
    %v20 = sdy.sharding_constraint %v1 <@mesh, [{?}], unreduced={"x"}> : tensor<16xf32>
    return %v20 : tensor<16xf32>
  }
}
