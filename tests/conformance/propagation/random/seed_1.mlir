module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {}]>}) -> (tensor<4x16xf32>) {
    %v1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<4x16xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x16xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x16xi32>, tensor<4x16xi32>) -> (tensor<4x16xi1>)
    %v5 = "stablehlo.select"(%v4, %arg0, %arg0) {} : (tensor<4x16xi1>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>)
    %v6 = "stablehlo.reverse"(%v5) {dimensions = array<i64: 1>} : (tensor<4x16xf32>) -> (tensor<4x16xf32>)
    return %v6 : tensor<4x16xf32>
  }
}
