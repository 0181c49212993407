module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg1: tensor<4xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}]>}) -> (tensor<4xf32>, tensor<16xf32>, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
    %v1 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v2 = "stablehlo.dynamic_update_slice"(%arg0, %arg1, %v1) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    %v3 = "stablehlo.tanh"(%arg0) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    %v13:2 = sdy.manual_computation(%arg0, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{"y"}]>, <@mesh, [{"x", "y", ?}]>, <@mesh, [{"y", ?}]>, <@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", "y", ?}]>, <@mesh, [{"x", "y", ?}]>] manual_axes={"x", "y"} (%v4a0: tensor<2xf32>, %v4a1: tensor<1xf32>, %v4a2: tensor<2xf32>, %v4a3: tensor<1xf32>) {
    %v6:2 = "func.call"(%v4a0, %v4a0, %v4a0) {callee = @f1} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %v7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v8 = "stablehlo.dynamic_update_slice"(%v6#1, %v4a1, %v7) {} : (tensor<2xf32>, tensor<1xf32>, tensor<i32>) -> (tensor<2xf32>)
    %v12 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v9:2 = stablehlo.while(%v9i0 = %v4a1, %v9c = %v12) : tensor<1xf32>, tensor<i32> cond {
    %v9l = stablehlo.constant dense<4> : tensor<i32>
    %v9q = stablehlo.compare LT, %v9c, %v9l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v9q : tensor<i1>
    } do {
    %v9o = stablehlo.constant dense<1> : tensor<i32>
    %v9j = stablehlo.add %v9c, %v9o : tensor<i32>
    %v10:2 = "func.call"(%v4a2, %v4a2, %v4a2) {callee = @f1} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %v11 = "stablehlo.add"(%v9i0, %v4a3) {} : (tensor<1xf32>, tensor<1xf32>) -> (tensor<1xf32>)
    stablehlo.return %v11, %v9j : tensor<1xf32>, tensor<i32>
    }
    sdy.return %v6#1, %v8 : tensor<2xf32>, tensor<2xf32>
    } : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v18:2 = sdy.manual_computation(%arg4) in_shardings=[<@mesh, [{"x", "y", ?}]>] out_shardings=[<@mesh, [{"y", ?}]>, <@mesh, [{"y", ?}]>] manual_axes={"x"} (%v14a0: tensor<4xf32>) {
    %v15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v16 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v17:2 = "stablehlo.reduce"(%v14a0, %v14a0, %v15, %v16) ({ ^bb0(%p0: tensor<f32>, %p1: tensor<f32>, %q0: tensor<f32>, %q1: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> %r1 = stablehlo.add %p1, %q1 : tensor<f32> stablehlo.return %r0, %r1 : tensor<f32>, tensor<f32> }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    sdy.return %v14a0, %v14a0 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %v18#1, %v13#1, %v18#0 : tensor<4xf32>, tensor<16xf32>, tensor<4xf32>
  }
  func.func private @f1(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %v5 = "stablehlo.add"(%arg0, %arg2) {} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
    return %v5, %v5 : tensor<2xf32>, tensor<2xf32>
  }
}
