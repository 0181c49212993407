module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>) -> (tensor<2x4xf32>) {
    %v5 = "func.call"(%arg1, %arg2, %arg2) {callee = @f1} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>)
    %v6 = "stablehlo.tanh"(%v5) {} : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
    return %v6 : tensor<2x4xf32>
  }
  func.func private @f2(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2x4xf32>) {
    %v3 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y", "z"} (%v1a0: tensor<2x4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
    sdy.return %v2 : tensor<2x4xf32>
    } : (tensor<4x4xf32>) -> (tensor<2x4xf32>)
    return %v3 : tensor<2x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>) -> (tensor<2x4xf32>) {
    %v4 = "func.call"(%arg1, %arg2) {callee = @f2} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>)
    return %v4 : tensor<2x4xf32>
  }
}
