module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4x4x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<2x4x4xf32>, %arg4: tensor<i32>) -> (tensor<4x4x4xf32>) {
    %v1 = "stablehlo.tanh"(%arg2) {} : (tensor<4xf32>) -> (tensor<4xf32>)
    %v6 = sdy.manual_computation(%arg0, %arg0, %arg3, %arg4) in_shardings=[<@mesh, [{?}, {}, {}]>, <@mesh, [{"z"}, {}, {}]>, <@mesh, [{"z"}, {}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"x", "y"} (%v2a0: tensor<4x4x4xf32>, %v2a1: tensor<4x4x4xf32>, %v2a2: tensor<2x4x4xf32>, %v2a3: tensor<i32>) {
    %v3 = "stablehlo.add"(%v2a1, %v2a1) {} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v4 = "stablehlo.sort"(%v3) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r = stablehlo.compare LT, %p0, %q0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %r : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>)
    %v5 = "stablehlo.dynamic_update_slice"(%v4, %v2a2, %v2a3, %v2a3, %v2a3) {} : (tensor<4x4x4xf32>, tensor<2x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<4x4x4xf32>)
    sdy.return %v4 : tensor<4x4x4xf32>
    } : (tensor<4x4x4xf32>, tensor<4x4x4xf32>, tensor<2x4x4xf32>, tensor<i32>) -> (tensor<4x4x4xf32>)
    return %v6 : tensor<4x4x4xf32>
  }
}
