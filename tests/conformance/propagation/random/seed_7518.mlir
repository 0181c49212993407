module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}], unreduced={"y"}>}, tensor<2x64xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.dynamic_slice"(%arg0, %v1, %v2) {slice_sizes = array<i64: 4, 8>} : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<4x8xf32>)
    %v4 = "stablehlo.maximum"(%v3, %arg1) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7 = "stablehlo.dynamic_slice"(%arg0, %v5, %v6) {slice_sizes = array<i64: 4, 8>} : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<4x8xf32>)
    %v12:2 = sdy.manual_computation(%arg1, %v4) in_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {"y"}]>] out_shardings=[<@mesh, [{?}, {"x", "y", ?}]>, <@mesh, [{}, {"x"}]>] manual_axes={"x", "y"} (%v8a0: tensor<4x8xf32>, %v8a1: tensor<4x4xf32>) {
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v11 = "stablehlo.dynamic_slice"(%v8a0, %v9, %v10) {slice_sizes = array<i64: 2, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x8xf32>)
    sdy.return %v11, %v11 : tensor<2x8xf32>, tensor<2x8xf32>
    } : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<2x64xf32>, tensor<2x32xf32>)
    %v13:2 = "stablehlo.sort"(%v7, %arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %v13#1, %v4, %v12#0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x64xf32>
  }
}
