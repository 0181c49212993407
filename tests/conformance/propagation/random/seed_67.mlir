module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"y"}>}, %arg1: tensor<4x32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}) -> (tensor<16x8xf32>) {
    %v1 = "stablehlo.exponential"(%arg0) {} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    %v2 = "stablehlo.reshape"(%v1) {} : (tensor<16x8xf32>) -> (tensor<128xf32>)
    %v3 = "stablehlo.exponential"(%arg0) {} : (tensor<16x8xf32>) -> (tensor<16x8xf32>)
    return %v3 : tensor<16x8xf32>
  }
}
