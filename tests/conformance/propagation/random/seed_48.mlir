module {
  sdy.mesh @mesh = <["x"=8, "y"=2]>
  func.func @main(%arg0: tensor<32x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}, {}, {"x":(2)4, "y", ?}]>}) -> (tensor<32x16x8xf32>) {
    %v1 = "stablehlo.reverse"(%arg0) {dimensions = array<i64: 2>} : (tensor<32x16x8xf32>) -> (tensor<32x16x8xf32>)
    %v2:2 = "stablehlo.optimization_barrier"(%v1, %arg0) {} : (tensor<32x16x8xf32>, tensor<32x16x8xf32>) -> (tensor<32x16x8xf32>, tensor<32x16x8xf32>)
    return %v2#1 : tensor<32x16x8xf32>
  }
}
