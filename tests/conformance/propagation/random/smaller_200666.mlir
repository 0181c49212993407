module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z", "x"}, {"y"}]>}) -> (tensor<4x4x4xf32>) {
    %v4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:3 = stablehlo.while(%v1i0 = %arg0, %v1i1 = %arg0, %v1c = %v4) : tensor<4x4x4xf32>, tensor<4x4x4xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v2:2 = "stablehlo.optimization_barrier"(%v1i1, %v1i1) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    %v3 = "stablehlo.reshape"(%v2#1) {} : (tensor<4x4x4xf32>) -> (tensor<2x2x4x4xf32>)
    stablehlo.return %v2#1, %v2#1, %v1j : tensor<4x4x4xf32>, tensor<4x4x4xf32>, tensor<i32>
    }
    %v5:2 = "stablehlo.optimization_barrier"(%v1#1, %v1#1) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    %v7:2 = "func.call"(%v5#1) {callee = @f1, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>, <@mesh, [{}, {?}, {}]>]>} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    return %v7#1 : tensor<4x4x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>) {
    %v6 = "stablehlo.tanh"(%arg0) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    return %v6, %v6 : tensor<4x4x4xf32>, tensor<4x4x4xf32>
  }
}
