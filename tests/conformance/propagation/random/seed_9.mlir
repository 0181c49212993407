module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}], unreduced={"x"}>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4}]>}, %arg2: tensor<8xf32>, %arg3: tensor<8x8x32xf32>, %arg4: tensor<8x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}, {}]>}, %arg5: tensor<8x16xf32>, %arg6: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}, %arg7: tensor<8x8x32xf32>, %arg8: tensor<8x32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}, {?}]>}, %arg9: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", ?}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, tensor<8xf32>, tensor<32x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x":(1)2, ?}]>}) {
    %v1:2 = "stablehlo.sort"(%arg1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %v5:2 = "func.call"(%v1#1, %arg3, %arg4, %arg5) {callee = @f1, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"x"}, {?}]>, <@mesh, [{"x", ?}, {?}]>]>} : (tensor<8xf32>, tensor<8x8x32xf32>, tensor<8x32x32xf32>, tensor<8x16xf32>) -> (tensor<32x32x16xf32>, tensor<8x16xf32>)
    %v6 = "stablehlo.slice"(%v1#0) {start_indices = array<i64: 4>, limit_indices = array<i64: 8>, strides = array<i64: 1>} : (tensor<8xf32>) -> (tensor<4xf32>)
    %v7:2 = "func.call"(%arg6, %arg7, %arg8, %arg9) {callee = @f1} : (tensor<8xf32>, tensor<8x8x32xf32>, tensor<8x32x32xf32>, tensor<8x16xf32>) -> (tensor<32x32x16xf32>, tensor<8x16xf32>)
    %v8 = "stablehlo.sort"(%arg6) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8xf32>) -> (tensor<8xf32>)
    return %v8, %v1#0, %v5#0 : tensor<8xf32>, tensor<8xf32>, tensor<32x32x16xf32>
  }
  func.func private @f1(%arg0: tensor<8xf32>, %arg1: tensor<8x8x32xf32>, %arg2: tensor<8x32x32xf32>, %arg3: tensor<8x16xf32>) -> (tensor<32x32x16xf32>, tensor<8x16xf32>) {
    %v2 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x8x32xf32>, tensor<8x32x32xf32>) -> (tensor<8x8x32xf32>)
    %v3 = "stablehlo.dot_general"(%arg2, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<8x32x32xf32>, tensor<8x16xf32>) -> (tensor<32x32x16xf32>)
    %v4 = "stablehlo.multiply"(%arg3, %arg3) {} : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>)
    return %v3, %v4 : tensor<32x32x16xf32>, tensor<8x16xf32>
  }
}
