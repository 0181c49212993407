module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", ?}]>}, %arg1: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}, %arg2: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>}) -> (tensor<8x8xf32>) {
    %v3 = sdy.manual_computation(%arg2, %arg2) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{"y", ?}, {}]>] out_shardings=[<@mesh, [{"y", "x", ?}, {?}]>] manual_axes={"y"} (%v1a0: tensor<4x8xf32>, %v1a1: tensor<2x8xf32>) {
    %v2 = "stablehlo.add"(%v1a0, %v1a0) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    sdy.return %v2 : tensor<4x8xf32>
    } : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<8x8xf32>)
    %v4 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> (tensor<4x8xi32>)
    %v5 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v6 = "stablehlo.broadcast_in_dim"(%v5) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<4x8xi32>)
    %v7 = "stablehlo.compare"(%v4, %v6) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x8xi32>, tensor<4x8xi32>) -> (tensor<4x8xi1>)
    %v8 = "stablehlo.select"(%v7, %arg2, %arg2) {} : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v10 = "stablehlo.reduce"(%arg2, %v9) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.maximum %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v11 = "stablehlo.broadcast_in_dim"(%v10) {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4x8xf32>)
    %v12 = "stablehlo.subtract"(%arg2, %v11) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v13 = "stablehlo.exponential"(%v12) {} : (tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v14 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %v15 = "stablehlo.reduce"(%v13, %v14) ({ ^bb0(%p0: tensor<f32>, %q0: tensor<f32>): %r0 = stablehlo.add %p0, %q0 : tensor<f32> stablehlo.return %r0 : tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> (tensor<4xf32>)
    %v16 = "stablehlo.broadcast_in_dim"(%v15) {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> (tensor<4x8xf32>)
    %v17 = "stablehlo.divide"(%v13, %v16) {} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>)
    %v18 = "stablehlo.cholesky"(%v3) {lower = true} : (tensor<8x8xf32>) -> (tensor<8x8xf32>)
    return %v18 : tensor<8x8xf32>
  }
}
