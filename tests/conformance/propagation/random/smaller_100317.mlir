module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> (tensor<4x4xf32>) {
    %v1:2 = "stablehlo.sort"(%arg2, %arg3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v2:2 = stablehlo.while(%v2i0 = %v1#1, %v2c = %v9) : tensor<4x4xf32>, tensor<i32> cond {
    %v2l = stablehlo.constant dense<4> : tensor<i32>
    %v2q = stablehlo.compare LT, %v2c, %v2l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v2q : tensor<i1>
    } do {
    %v2o = stablehlo.constant dense<1> : tensor<i32>
    %v2j = stablehlo.add %v2c, %v2o : tensor<i32>
    %v7 = sdy.manual_computation(%v2i0) in_shardings=[<@mesh, [{}, {"x"}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%v3a0: tensor<4x2xf32>) {
    %v6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v4:2 = stablehlo.while(%v4i0 = %v3a0, %v4c = %v6) : tensor<4x2xf32>, tensor<i32> cond {
    %v4l = stablehlo.constant dense<4> : tensor<i32>
    %v4q = stablehlo.compare LT, %v4c, %v4l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v4q : tensor<i1>
    } do {
    %v4o = stablehlo.constant dense<1> : tensor<i32>
    %v4j = stablehlo.add %v4c, %v4o : tensor<i32>
    %v5 = "stablehlo.tanh"(%v4i0) {} : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
    stablehlo.return %v5, %v4j : tensor<4x2xf32>, tensor<i32>
    }
    sdy.return %v4#0 : tensor<4x2xf32>
    } : (tensor<4x4xf32>) -> (tensor<4x2xf32>)
    %v8 = "stablehlo.tanh"(%v2i0) {} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    stablehlo.return %v8, %v2j : tensor<4x4xf32>, tensor<i32>
    }
    return %v2#0 : tensor<4x4xf32>
  }
}
