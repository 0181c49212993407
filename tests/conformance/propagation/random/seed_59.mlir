module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", ?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {?}]>}, %arg2: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg3: tensor<16x32xf32>, %arg4: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}, %arg5: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<16x32xf32>, tensor<16x4xf32>) {
    %v1 = "stablehlo.dot_general"(%arg1, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x16xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>)
    %v2 = "stablehlo.dot_general"(%arg1, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<16x16xf32>, tensor<16x4xf32>) -> (tensor<16x4xf32>)
    %v11:2 = "func.call"(%arg5, %arg2) {callee = @f1} : (tensor<16x32xf32>, tensor<16xf32>) -> (tensor<16x32xf32>, tensor<32xf32>)
    %v12 = "stablehlo.transpose"(%arg3) {permutation = array<i64: 0, 1>} : (tensor<16x32xf32>) -> (tensor<16x32xf32>)
    return %v12, %v2 : tensor<16x32xf32>, tensor<16x4xf32>
  }
  func.func private @f1(%arg0: tensor<16x32xf32>, %arg1: tensor<16xf32>) -> (tensor<16x32xf32>, tensor<32xf32>) {
    %v3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v5:2 = "stablehlo.reduce"(%arg0, %arg0, %v3, %v4) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<16x32xf32>, tensor<16x32xf32>, tensor<f32>, tensor<f32>) -> (tensor<32xf32>, tensor<32xf32>)
    %v6 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<16x32xi32>)
    %v7 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v8 = "stablehlo.broadcast_in_dim"(%v7) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<16x32xi32>)
    %v9 = "stablehlo.compare"(%v6, %v8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<16x32xi32>, tensor<16x32xi32>) -> (tensor<16x32xi1>)
    %v10 = "stablehlo.select"(%v9, %arg0, %arg0) {} : (tensor<16x32xi1>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>)
    return %v10, %v5#0 : tensor<16x32xf32>, tensor<32xf32>
  }
}
