module @bits {
  func.func public @main(%x: tensor<3x4xui8>, %y: tensor<5x16xi1>) -> (tensor<3x4x8xi1>, tensor<5xi16>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<3x4xui8>) -> tensor<3x4x8xi1>
    %1 = stablehlo.bitcast_convert %y : (tensor<5x16xi1>) -> tensor<5xi16>
    return %0, %1 : tensor<3x4x8xi1>, tensor<5xi16>
  }
}
