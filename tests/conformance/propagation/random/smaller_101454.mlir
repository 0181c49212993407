module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>, %arg4: tensor<i32>, %arg5: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg6: tensor<4x8xf32>, %arg7: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}, tensor<8xf32>) {
    %v1:2 = "stablehlo.sort"(%arg1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 1 : i64, is_stable = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
    %v2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4:2 = "stablehlo.reduce"(%v1#1, %arg3, %v2, %v3) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    %v5 = "stablehlo.case"(%arg4) ({
    %v6 = "stablehlo.scatter"(%arg3, %arg5, %arg6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> (tensor<8x8xf32>)
    stablehlo.return %v6 : tensor<8x8xf32>
    }, {
    %v7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v8 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v9 = "stablehlo.dynamic_update_slice"(%v1#1, %arg7, %v7, %v8) {} : (tensor<8x8xf32>, tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<8x8xf32>)
    stablehlo.return %v9 : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>
    return %v5, %v4#1 : tensor<8x8xf32>, tensor<8xf32>
  }
}
