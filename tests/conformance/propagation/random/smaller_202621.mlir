module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<4x4x4xf32>, %arg1: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z"}, {}]>}, %arg2: tensor<4xf32>, %arg3: tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
    %v2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v4 = "stablehlo.dynamic_update_slice"(%arg1, %arg3, %v1, %v2, %v3) {} : (tensor<4x4x4xf32>, tensor<2x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<4x4x4xf32>)
    %v5 = sdy.propagation_barrier %v4 allowed_direction=NONE : tensor<4x4x4xf32>
    %v6 = "stablehlo.reverse"(%arg3) {dimensions = array<i64: 0>} : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>)
    return %v6 : tensor<2x4x4xf32>
  }
}
