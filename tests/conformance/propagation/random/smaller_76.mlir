module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<4xf32>, %arg8: tensor<4xf32>) -> (tensor<4xf32>) {
    %v1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x4xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x4xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x4xi32>, tensor<4x4xi32>) -> (tensor<4x4xi1>)
    %v5 = "stablehlo.select"(%v4, %arg1, %arg1) {} : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>)
    %v11 = "func.call"(%arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8) {callee = @f1} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    return %v11 : tensor<4xf32>
  }
  func.func private @f2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}]>}) -> (tensor<4xf32>) {
    %v6 = "stablehlo.add"(%arg1, %arg2) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    %v7:2 = "stablehlo.optimization_barrier"(%v6, %v6) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %v7#0 : tensor<4xf32>
  }
  func.func @f3(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %v9 = "func.call"(%arg1, %arg1, %arg1) {callee = @f2} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    return %v9 : tensor<4xf32>
  }
  func.func private @f1(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>) -> (tensor<4xf32>) {
    %v8 = "func.call"(%arg2, %arg3, %arg4) {callee = @f2} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    %v10 = "func.call"(%arg5, %arg6) {callee = @f3} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
    return %v10 : tensor<4xf32>
  }
}
