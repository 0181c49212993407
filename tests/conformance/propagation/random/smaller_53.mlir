module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4x4x4xf32>) -> (tensor<16x4x4xf32>) {
    %v1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<4x4xf32>) -> (tensor<4x4x4xf32>)
    %v5 = "func.call"(%arg1) {callee = @f1} : (tensor<4x4x4xf32>) -> (tensor<16x4x4xf32>)
    return %v5 : tensor<16x4x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4x4xf32>) -> (tensor<16x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
    %v4:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>, <@mesh, [{"y"}, {}, {}]>] manual_axes={"x", "y"} (%v2a0: tensor<4x4x4xf32>) {
    %v3 = "stablehlo.tanh"(%v2a0) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    sdy.return %v3, %v3 : tensor<4x4x4xf32>, tensor<4x4x4xf32>
    } : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<16x4x4xf32>)
    return %v4#1 : tensor<16x4x4xf32>
  }
}
