// bitcast_convert_float4: two codes make a byte, the first in its low bits
// argument {"dtype": "float4_e2m1fn", "shape": [2, 2], "data": [[1.0, -0.5], [6.0, -6.0]]}
// result {"value": {"dtype": "uint8", "shape": [2], "data": [146, 247]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int8", "shape": [2, 2], "data": [[2, -7], [7, -1]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[1.0, -0.5], [6.0, -6.0]]}, "compare": {"exact": true}}
module @jit_bitcast_convert_float4 {
  func.func public @main(%arg0: tensor<2x2xf4E2M1FN>) -> (tensor<2xui8>, tensor<2x2xi8>, tensor<2x2xf32>) {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<2x2xf4E2M1FN>) -> tensor<2xui8>
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<2x2xf4E2M1FN>) -> tensor<2x2xi4>
    %2 = stablehlo.convert %1 : (tensor<2x2xi4>) -> tensor<2x2xi8>
    %3 = stablehlo.bitcast_convert %1 : (tensor<2x2xi4>) -> tensor<2x2xf4E2M1FN>
    %4 = stablehlo.convert %3 : (tensor<2x2xf4E2M1FN>) -> tensor<2x2xf32>
    return %0, %2, %4 : tensor<2xui8>, tensor<2x2xi8>, tensor<2x2xf32>
  }
}
