module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4x4xf32>, %arg2: tensor<4x4xf32>, %arg3: tensor<i32>, %arg4: tensor<2x4xf32>, %arg5: tensor<2x4xf32>) -> (tensor<4x4xf32>) {
    %v12:2 = "func.call"(%arg1, %arg2, %arg3, %arg4) {callee = @f1} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>)
    %v14:2 = "func.call"(%v12#0, %arg5) {callee = @f2} : (tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    return %v14#1 : tensor<4x4xf32>
  }
  func.func private @f1(%arg0: tensor<4x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<i32>, %arg3: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>) {
    %v1 = "stablehlo.sort"(%arg1) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4x4xf32>) -> (tensor<4x4xf32>)
    %v10 = sdy.manual_computation(%v1, %arg2, %arg3) in_shardings=[<@mesh, [{"x", "z"}, {}]>, <@mesh, []>, <@mesh, [{"z"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y"} (%v2a0: tensor<2x4xf32>, %v2a1: tensor<i32>, %v2a2: tensor<2x4xf32>) {
    %v3:2 = "stablehlo.optimization_barrier"(%v2a0, %v2a0) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %v4 = "stablehlo.case"(%v2a1) ({
    %v5 = "stablehlo.add"(%v3#1, %v3#1) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
    stablehlo.return %v5 : tensor<2x4xf32>
    }, {
    %v6 = "stablehlo.tanh"(%v3#1) {} : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
    %v7:2 = "stablehlo.optimization_barrier"(%v6, %v6) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %v8 = "stablehlo.add"(%v7#1, %v7#1) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
    stablehlo.return %v8 : tensor<2x4xf32>
    }) : (tensor<i32>) -> tensor<2x4xf32>
    %v9 = "stablehlo.add"(%v4, %v2a2) {} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
    sdy.return %v9 : tensor<2x4xf32>
    } : (tensor<4x4xf32>, tensor<i32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
    %v11 = "stablehlo.tanh"(%v10) {} : (tensor<2x4xf32>) -> (tensor<2x4xf32>)
    return %v1, %v11 : tensor<4x4xf32>, tensor<2x4xf32>
  }
  func.func private @f2(%arg0: tensor<4x4xf32>, %arg1: tensor<2x4xf32>) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<4x4xf32>) {
    %v13 = sdy.sharding_constraint %arg0 <@mesh, [{?}, {}]> : tensor<4x4xf32>
    return %v13, %v13 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
