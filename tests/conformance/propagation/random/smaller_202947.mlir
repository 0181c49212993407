module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x4x32xf32>, %arg1: tensor<32x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}, {"x", ?}]>}, %arg2: tensor<16x4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}, {}, {?}]>}) -> (tensor<16x4x32xf32>) {
    %v1 = "stablehlo.concatenate"(%arg0, %arg0) {dimension = 0 : i64} : (tensor<16x4x32xf32>, tensor<16x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v2 = "stablehlo.tanh"(%v1) {} : (tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v3 = "stablehlo.constant"() {value = dense<8> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v5 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.dynamic_update_slice"(%v1, %arg2, %v3, %v4, %v5) {} : (tensor<32x4x32xf32>, tensor<16x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<32x4x32xf32>)
    %v19 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v7:3 = stablehlo.while(%v7i0 = %v2, %v7i1 = %arg2, %v7c = %v19) : tensor<32x4x32xf32>, tensor<16x4x32xf32>, tensor<i32> cond {
    %v7l = stablehlo.constant dense<4> : tensor<i32>
    %v7q = stablehlo.compare LT, %v7c, %v7l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v7q : tensor<i1>
    } do {
    %v7o = stablehlo.constant dense<1> : tensor<i32>
    %v7j = stablehlo.add %v7c, %v7o : tensor<i32>
    %v15:2 = sdy.manual_computation(%v7i1, %v7i0) in_shardings=[<@mesh, [{}, {}, {"x", ?}]>, <@mesh, [{}, {}, {"x"}]>] out_shardings=[<@mesh, [{}, {}, {?}]>, <@mesh, [{?}, {?}, {?}]>] manual_axes={"x", "y"} (%v8a0: tensor<16x4x16xf32>, %v8a1: tensor<32x4x16xf32>) {
    %v9:2 = "stablehlo.optimization_barrier"(%v8a0, %v8a0) {} : (tensor<16x4x16xf32>, tensor<16x4x16xf32>) -> (tensor<16x4x16xf32>, tensor<16x4x16xf32>)
    %v10:2 = "stablehlo.optimization_barrier"(%v8a0, %v8a0) {} : (tensor<16x4x16xf32>, tensor<16x4x16xf32>) -> (tensor<16x4x16xf32>, tensor<16x4x16xf32>)
    %v11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v13 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v14 = "stablehlo.dynamic_slice"(%v9#1, %v11, %v12, %v13) {slice_sizes = array<i64: 16, 2, 16>} : (tensor<16x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x2x16xf32>)
    sdy.return %v9#1, %v9#0 : tensor<16x4x16xf32>, tensor<16x4x16xf32>
    } : (tensor<16x4x32xf32>, tensor<32x4x32xf32>) -> (tensor<16x4x16xf32>, tensor<16x4x16xf32>)
    %v16 = sdy.sharding_constraint %v15#0 <@mesh, [{}, {}, {}]> : tensor<16x4x16xf32>
    %v17 = "stablehlo.tanh"(%v7i0) {} : (tensor<32x4x32xf32>) -> (tensor<32x4x32xf32>)
    %v18 = "stablehlo.tanh"(%v7i1) {} : (tensor<16x4x32xf32>) -> (tensor<16x4x32xf32>)
    stablehlo.return %v17, %v18, %v7j : tensor<32x4x32xf32>, tensor<16x4x32xf32>, tensor<i32>
    }
    return %v7#1 : tensor<16x4x32xf32>
  }
}
