module {
  sdy.mesh @mesh = <["x"=4, "y"=4]>
  func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x"}]>}, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %arg4: tensor<4xf32>, %arg5: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %v1:2 = "stablehlo.sort"(%arg1, %arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>, %p1: tensor<f32>, %q1: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %v2 = "stablehlo.negate"(%arg1) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    %v3 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.dynamic_update_slice"(%arg1, %arg3, %v3) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    %v5 = "stablehlo.dynamic_update_slice"(%v4, %arg4, %arg5) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    %v6 = "stablehlo.reshape"(%v2) {} : (tensor<8xf32>) -> (tensor<2x4xf32>)
    %v7 = "stablehlo.tanh"(%v1#0) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    return %v7, %v1#0 : tensor<8xf32>, tensor<8xf32>
  }
}
