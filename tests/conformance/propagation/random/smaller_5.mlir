module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<4xf32>, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<2xf32>, %arg5: tensor<i32>) -> (tensor<4xf32>) {
    %v1 = "stablehlo.concatenate"(%arg2, %arg3) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>)
    %v3 = "func.call"(%v1) {callee = @f1} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    %v8:2 = sdy.manual_computation(%arg3, %arg4, %arg5) in_shardings=[<@mesh, [{}]>, <@mesh, [{}]>, <@mesh, []>] out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>] manual_axes={"y"} (%v4a0: tensor<4xf32>, %v4a1: tensor<2xf32>, %v4a2: tensor<i32>) {
    %v5 = "stablehlo.tanh"(%v4a0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v6 = "stablehlo.dynamic_update_slice"(%v5, %v4a1, %v4a2) {} : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<4xf32>)
    %v7 = "stablehlo.tanh"(%v6) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v7, %v7 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %v8#1 : tensor<4xf32>
  }
  func.func private @f1(%arg0: tensor<8xf32>) -> (tensor<4x2xf32>) {
    %v2 = "stablehlo.reshape"(%arg0) {} : (tensor<8xf32>) -> (tensor<4x2xf32>)
    return %v2 : tensor<4x2xf32>
  }
}
