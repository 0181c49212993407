module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg3: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg4: tensor<4x8xf32>, %arg5: tensor<1x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg6: tensor<i32>) -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) {
    %v3 = sdy.manual_computation(%arg2) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%v1a0: tensor<4xf32>) {
    %v2 = "stablehlo.tanh"(%v1a0) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    sdy.return %v2 : tensor<4xf32>
    } : (tensor<4xf32>) -> (tensor<4xf32>)
    %v6 = "func.call"(%arg3, %arg4) {callee = @f1} : (tensor<4x4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v7 = "stablehlo.reshape"(%arg2) {} : (tensor<4xf32>) -> (tensor<2x2xf32>)
    %v8 = "stablehlo.dynamic_update_slice"(%v7, %arg5, %arg6, %arg6) {} : (tensor<2x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x2xf32>)
    %v9 = "stablehlo.reshape"(%arg4) {} : (tensor<4x8xf32>) -> (tensor<32xf32>)
    return %v9 : tensor<32xf32>
  }
  func.func private @f1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> (tensor<4x8xf32>) {
    %v4:2 = "stablehlo.optimization_barrier"(%arg0, %arg0) {} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %v5 = "stablehlo.dot_general"(%v4#1, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<4x4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    return %v5 : tensor<4x8xf32>
  }
}
