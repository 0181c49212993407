module {
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func @main(%arg0: tensor<16x8x16xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", ?}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg3: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg4: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z", "y", ?}]>}) -> (tensor<8x2xf32>, tensor<16x8x32xf32>) {
    %v4:2 = sdy.manual_computation(%arg1, %arg1, %arg3) in_shardings=[<@mesh, [{"z", "y", ?}]>, <@mesh, [{"x", "z", "y", ?}]>, <@mesh, [{"x", "z", ?}]>] out_shardings=[<@mesh, [{"x", "z"}]>, <@mesh, [{"x", "z", "y", ?}]>] manual_axes={"x", "z"} (%v1a0: tensor<4xf32>, %v1a1: tensor<2xf32>, %v1a2: tensor<2xf32>) {
    %v2 = "stablehlo.broadcast_in_dim"(%v1a1) {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> (tensor<2x16xf32>)
    %v3 = "stablehlo.concatenate"(%v1a1, %v1a2) {dimension = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>)
    sdy.return %v3, %v3 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    %v5 = "stablehlo.dot_general"(%arg0, %arg4) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<16x8x16xf32>, tensor<16x32xf32>) -> (tensor<16x8x32xf32>)
    %v6 = "stablehlo.reshape"(%v4#0) {} : (tensor<16xf32>) -> (tensor<8x2xf32>)
    return %v6, %v5 : tensor<8x2xf32>, tensor<16x8x32xf32>
  }
}
