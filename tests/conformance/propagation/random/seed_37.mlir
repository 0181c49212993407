module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<32x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}, {?}]>}, %arg1: tensor<32x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y":(2)2, ?}, {?}]>}, %arg2: tensor<32x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg3: tensor<i32>, %arg4: tensor<16x1xi32>, %arg5: tensor<16x32x32xf32>) -> (tensor<32x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {}], replicated={"x"}>}) {
    %v1 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<32x32x32xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<32x32x32xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<32x32x32xi32>, tensor<32x32x32xi32>) -> (tensor<32x32x32xi1>)
    %v5 = "stablehlo.select"(%v4, %arg0, %arg1) {} : (tensor<32x32x32xi1>, tensor<32x32x32xf32>, tensor<32x32x32xf32>) -> (tensor<32x32x32xf32>)
    %v6 = "stablehlo.scatter"(%arg0, %arg2, %arg0) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x32x32xf32>, tensor<32x1xi32>, tensor<32x32x32xf32>) -> (tensor<32x32x32xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7:2 = stablehlo.while(%v7i0 = %arg1, %v7c = %v12) : tensor<32x32x32xf32>, tensor<i32> cond {
    %v7l = stablehlo.constant dense<4> : tensor<i32>
    %v7q = stablehlo.compare LT, %v7c, %v7l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v7q : tensor<i1>
    } do {
    %v7o = stablehlo.constant dense<1> : tensor<i32>
    %v7j = stablehlo.add %v7c, %v7o : tensor<i32>
    %v8 = "stablehlo.reshape"(%v7i0) {} : (tensor<32x32x32xf32>) -> (tensor<1024x32xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.pad"(%v7i0, %v9) {edge_padding_low = array<i64: 0, 0, 0>, edge_padding_high = array<i64: 0, 0, 32>, interior_padding = array<i64: 0, 0, 0>} : (tensor<32x32x32xf32>, tensor<f32>) -> (tensor<32x32x64xf32>)
    %v11 = "stablehlo.tanh"(%v7i0) {} : (tensor<32x32x32xf32>) -> (tensor<32x32x32xf32>)
    stablehlo.return %v11, %v7j : tensor<32x32x32xf32>, tensor<i32>
    }
    %v13 = "stablehlo.case"(%arg3) ({
    %v14 = "stablehlo.scatter"(%v6, %arg4, %arg5) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<32x32x32xf32>, tensor<16x1xi32>, tensor<16x32x32xf32>) -> (tensor<32x32x32xf32>)
    stablehlo.return %v14 : tensor<32x32x32xf32>
    }, {
    %v15 = "stablehlo.transpose"(%v5) {permutation = array<i64: 1, 0, 2>} : (tensor<32x32x32xf32>) -> (tensor<32x32x32xf32>)
    %v16 = "stablehlo.exponential"(%v7#0) {} : (tensor<32x32x32xf32>) -> (tensor<32x32x32xf32>)
    %v22 = sdy.manual_computation(%v16, %v7#0) in_shardings=[<@mesh, [{}, {?}, {}]>, <@mesh, [{?}, {}, {"x", ?}]>] out_shardings=[<@mesh, [{?}, {?}, {"x", "y"}]>] manual_axes={"x", "y"} (%v17a0: tensor<32x32x32xf32>, %v17a1: tensor<32x32x8xf32>) {
    %v18 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v19 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v20 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v21 = "stablehlo.dynamic_slice"(%v17a1, %v18, %v19, %v20) {slice_sizes = array<i64: 16, 32, 8>} : (tensor<32x32x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x32x8xf32>)
    sdy.return %v21 : tensor<16x32x8xf32>
    } : (tensor<32x32x32xf32>, tensor<32x32x32xf32>) -> (tensor<16x32x128xf32>)
    stablehlo.return %v15 : tensor<32x32x32xf32>
    }) : (tensor<i32>) -> tensor<32x32x32xf32>
    return %v13 : tensor<32x32x32xf32>
  }
}
