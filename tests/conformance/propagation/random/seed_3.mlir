module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}, %arg1: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", ?}, {?}]>}, %arg2: tensor<32x8xf32>) -> (tensor<4x16x8xf32>, tensor<4x8xf32>) {
    %v1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<8xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<8xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi1>)
    %v5 = "stablehlo.select"(%v4, %arg0, %arg0) {} : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>)
    %v7 = "func.call"(%arg0, %arg0) {callee = @f1} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v9 = "stablehlo.reduce"(%arg1, %v8) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<4x16x8xf32>, tensor<f32>) -> (tensor<4x16xf32>)
    %v10 = "stablehlo.broadcast_in_dim"(%v9) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x16xf32>) -> (tensor<4x16x8xf32>)
    %v11 = "stablehlo.subtract"(%arg1, %v10) {} : (tensor<4x16x8xf32>, tensor<4x16x8xf32>) -> (tensor<4x16x8xf32>)
    %v12 = "stablehlo.exponential"(%v11) {} : (tensor<4x16x8xf32>) -> (tensor<4x16x8xf32>)
    %v13 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v14 = "stablehlo.reduce"(%v12, %v13) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 2>} : (tensor<4x16x8xf32>, tensor<f32>) -> (tensor<4x16xf32>)
    %v15 = "stablehlo.broadcast_in_dim"(%v14) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x16xf32>) -> (tensor<4x16x8xf32>)
    %v16 = "stablehlo.divide"(%v12, %v15) {} : (tensor<4x16x8xf32>, tensor<4x16x8xf32>) -> (tensor<4x16x8xf32>)
    return %v16, %v7 : tensor<4x16x8xf32>, tensor<4x8xf32>
  }
  func.func private @f1(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "y", "x":(2)2, ?}]>}, %arg1: tensor<8xf32>) -> (tensor<4x8xf32>) {
    %v6 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> (tensor<4x8xf32>)
    return %v6 : tensor<4x8xf32>
  }
}
