module {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4}]>}, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> (tensor<8xf32>) {
    %v11 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v1:2 = stablehlo.while(%v1i0 = %arg0, %v1c = %v11) : tensor<4xf32>, tensor<i32> cond {
    %v1l = stablehlo.constant dense<4> : tensor<i32>
    %v1q = stablehlo.compare LT, %v1c, %v1l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %v1q : tensor<i1>
    } do {
    %v1o = stablehlo.constant dense<1> : tensor<i32>
    %v1j = stablehlo.add %v1c, %v1o : tensor<i32>
    %v9 = sdy.manual_computation(%v1i0, %arg1) in_shardings=[<@mesh, [{}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%v2a0: tensor<4xf32>, %v2a1: tensor<4xf32>) {
    %v6 = "func.call"(%v2a0, %v2a0, %v2a0, %v2a1) {callee = @f1} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    %v7 = "stablehlo.tanh"(%v6) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    %v8 = "stablehlo.tanh"(%v7) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    sdy.return %v8 : tensor<8xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    %v10 = "stablehlo.tanh"(%v1i0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    stablehlo.return %v10, %v1j : tensor<4xf32>, tensor<i32>
    }
    %v12 = "func.call"(%arg1, %v1#0, %arg1, %arg2) {callee = @f1} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    return %v12 : tensor<8xf32>
  }
  func.func private @f1(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>) -> (tensor<8xf32>) {
    %v3 = "stablehlo.add"(%arg1, %arg2) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    %v4 = "stablehlo.concatenate"(%v3, %arg3) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    %v5 = "stablehlo.tanh"(%v4) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    return %v5 : tensor<8xf32>
  }
}
