module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, %arg2: tensor<4x4xf32>, %arg3: tensor<8xf32>, %arg4: tensor<4xf32>, %arg5: tensor<8xf32>, %arg6: tensor<8xf32>, %arg7: tensor<8xf32>, %arg8: tensor<8xf32>) -> (tensor<8xf32>) {
    %v1 = "stablehlo.tanh"(%arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    %v7 = "func.call"(%arg3, %arg4, %arg5, %arg6) {callee = @f1} : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>)
    %v8 = "func.call"(%arg7, %arg8) {callee = @f2} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>)
    return %v8 : tensor<8xf32>
  }
  func.func private @f2(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32>) {
    %v4 = "stablehlo.tanh"(%arg1) {} : (tensor<8xf32>) -> (tensor<8xf32>)
    return %v4 : tensor<8xf32>
  }
  func.func @f1(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) -> (tensor<8xf32>) {
    %v2 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.dynamic_update_slice"(%arg0, %arg1, %v2) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    %v5 = "func.call"(%arg2, %arg3) {callee = @f2} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>)
    %v6:2 = "stablehlo.optimization_barrier"(%v5, %v5) {} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %v6#1 : tensor<8xf32>
  }
}
