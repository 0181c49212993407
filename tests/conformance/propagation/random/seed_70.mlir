module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}, {?}]>}, %arg1: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg2: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], replicated={"y"}>}) -> (tensor<16xf32>, tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}]>}, tensor<16xf32>) {
    %v4:2 = "func.call"(%arg1, %arg2) {callee = @f1} : (tensor<32xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v5:2 = "stablehlo.sort"(%arg2, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    return %v5#1, %v4#0, %v5#0 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  }
  func.func private @f1(%arg0: tensor<32xf32>, %arg1: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}]>}) {
    %v1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v2 = "stablehlo.reduce"(%arg0, %v1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<32xf32>, tensor<f32>) -> (tensor<f32>)
    %v3 = "stablehlo.reverse"(%arg1) {dimensions = array<i64: 0>} : (tensor<16xf32>) -> (tensor<16xf32>)
    return %v3, %v3 : tensor<16xf32>, tensor<16xf32>
  }
}
