// A value on devices 0 and 1, then on devices 2, 1 and 3 of four: two devices make groups with the two others, three do not.
sdy.mesh @two = <["x"=2]>
sdy.mesh @three = <["y"=3], device_ids=[2, 1, 3]>
func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@two, [{"x"}]>}) -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@three, [{"y"}]>}, tensor<f32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.negate %a : tensor<6xf32>
  %1 = sdy.sharding_constraint %0 <@three, [{"y"}]> : tensor<6xf32>
  %2 = stablehlo.abs %1 : tensor<6xf32>
  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %2, %3 : tensor<6xf32>, tensor<f32>
}
