module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg2: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"y"}>}) {
    %v1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.dynamic_slice"(%arg0, %v1, %v2) {slice_sizes = array<i64: 2, 4>} : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x4xf32>)
    %v4 = "stablehlo.add"(%v3, %arg1) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7 = "stablehlo.dynamic_slice"(%v4, %v5, %v6) {slice_sizes = array<i64: 1, 4>} : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<1x4xf32>)
    %v10:2 = sdy.manual_computation(%v7, %v4) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%v8a0: tensor<1x4xf32>, %v8a1: tensor<2x4xf32>) {
    %v9 = "stablehlo.tanh"(%v8a0) {} : (tensor<1x4xf32>) -> (tensor<1x4xf32>)
    sdy.return %v9, %v9 : tensor<1x4xf32>, tensor<1x4xf32>
    } : (tensor<1x4xf32>, tensor<2x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
    %v11:2 = "stablehlo.sort"(%v10#1, %arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<1x4xf32>, tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
    return %v11#1, %v4 : tensor<1x4xf32>, tensor<2x4xf32>
  }
}
