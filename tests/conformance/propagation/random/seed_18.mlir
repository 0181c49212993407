module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}, %arg3: tensor<256x8xf32>, %arg4: tensor<i32>) -> (tensor<256x8xf32>, tensor<8x16xf32>) {
    %v1 = "stablehlo.sort"(%arg2) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8x16xf32>) -> (tensor<8x16xf32>)
    %v9 = sdy.manual_computation(%arg1, %arg3, %arg4) in_shardings=[<@mesh, [{}, {?}]>, <@mesh, [{"x", "y"}, {?}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x", ?}, {"y", ?}]>] manual_axes={"x", "y"} (%v2a0: tensor<32x16xf32>, %v2a1: tensor<32x8xf32>, %v2a2: tensor<i32>) {
    %v7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3:3 = stablehlo.while(%v3i0 = %v2a0, %v3i1 = %v2a0, %v3c = %v7) : tensor<32x16xf32>, tensor<32x16xf32>, tensor<i32> cond {
    %v3l = stablehlo.constant dense<4> : tensor<i32>
    %v3q = stablehlo.compare LT, %v3c, %v3l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v3q : tensor<i1>
    } do {
    %v3o = stablehlo.constant dense<1> : tensor<i32>
    %v3j = stablehlo.add %v3c, %v3o : tensor<i32>
    %v4 = "stablehlo.dynamic_update_slice"(%v3i1, %v2a1, %v2a2, %v2a2) {} : (tensor<32x16xf32>, tensor<32x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<32x16xf32>)
    %v5:2 = "stablehlo.sort"(%v2a1, %v2a1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>)
    %v6 = "stablehlo.slice"(%v3i1) {start_indices = array<i64: 0, 8>, limit_indices = array<i64: 32, 16>, strides = array<i64: 1, 1>} : (tensor<32x16xf32>) -> (tensor<32x8xf32>)
    stablehlo.return %v4, %v4, %v3j : tensor<32x16xf32>, tensor<32x16xf32>, tensor<i32>
    }
    %v8 = "stablehlo.reshape"(%v2a0) {} : (tensor<32x16xf32>) -> (tensor<32x8x2xf32>)
    sdy.return %v3#0 : tensor<32x16xf32>
    } : (tensor<32x16xf32>, tensor<256x8xf32>, tensor<i32>) -> (tensor<128x32xf32>)
    %v10 = "stablehlo.exponential"(%arg3) {} : (tensor<256x8xf32>) -> (tensor<256x8xf32>)
    return %v10, %v1 : tensor<256x8xf32>, tensor<8x16xf32>
  }
}
