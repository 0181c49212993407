module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
    %v3:2 = sdy.manual_computation(%arg1, %arg0) in_shardings=[<@mesh, [{}, {}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y", "z"} (%v1a0: tensor<4x4x4xf32>, %v1a1: tensor<4x4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a1) {} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    sdy.return %v2, %v2 : tensor<4x4xf32>, tensor<4x4xf32>
    } : (tensor<4x4x4xf32>, tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<4x4xf32>)
    %v4 = sdy.sharding_constraint %v3#0 <@mesh, [{}, {}]> : tensor<8x4xf32>
    %v5 = "stablehlo.reverse"(%v4) {dimensions = array<i64: 1>} : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
    return %v5 : tensor<8x4xf32>
  }
}
