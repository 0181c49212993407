module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<32x4x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"z", "x"}, {}]>}, %arg3: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>) {
    %v12 = "func.call"(%arg3) {callee = @f1} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v13 = "stablehlo.tanh"(%v12) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    return %v13 : tensor<4x4x4xf32>
  }
  func.func private @f2(%arg0: tensor<4x4x4xf32>, %arg1: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}, tensor<4x4x4xf32>) {
    %v3 = "stablehlo.sort"(%arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v4:2 = "stablehlo.optimization_barrier"(%v3, %v3) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    %v5:2 = "stablehlo.optimization_barrier"(%v4#1, %v4#1) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    return %v3, %v3 : tensor<4x4x4xf32>, tensor<4x4x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>) {
    %v1 = "stablehlo.tanh"(%arg0) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v11 = sdy.manual_computation(%v1) in_shardings=[<@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{"y"}, {}, {}]>] manual_axes={"x", "z"} (%v2a0: tensor<4x4x4xf32>) {
    %v6:2 = "func.call"(%v2a0, %v2a0) {callee = @f2} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    %v7:2 = "stablehlo.optimization_barrier"(%v6#1, %v6#1) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>)
    %v10 = sdy.manual_computation(%v7#1, %v7#1) in_shardings=[<@mesh, [{}, {}, {}]>, <@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"y"} (%v8a0: tensor<4x4x4xf32>, %v8a1: tensor<4x4x4xf32>) {
    %v9 = "stablehlo.tanh"(%v8a1) {} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    sdy.return %v9 : tensor<4x4x4xf32>
    } : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    sdy.return %v7#0 : tensor<4x4x4xf32>
    } : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    return %v11 : tensor<4x4x4xf32>
  }
}
