module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<16x32xf32>, %arg1: tensor<32x4xf32>, %arg2: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}) -> (tensor<16x32xf32>) {
    %v1 = "stablehlo.dot_general"(%arg0, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<16x32xf32>, tensor<16x8xf32>) -> (tensor<32x8xf32>)
    %v2 = "stablehlo.sort"(%arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<32x4xf32>) -> (tensor<32x4xf32>)
    %v3 = "stablehlo.add"(%arg0, %arg0) {} : (tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>)
    return %v3 : tensor<16x32xf32>
  }
}
