// reduce_scatter_quantized: each device has its part of the sum of the floats that the elements stand for
// argument {"dtype": "int8", "shape": [8], "data": [5, 13, 100, -9, -9, 23, 100, 3]}
// result {"value": {"dtype": "int8", "shape": [4], "data": [-7, 33, 127, -9]}, "compare": {"exact": true}}
module @jit_reduce_scatter_quantized {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) {
      %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>, %arg3: tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>
        stablehlo.return %2 : tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>
      }) : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
      sdy.return %1 : tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
    } : (tensor<8x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
    return %0 : tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
  }
}
