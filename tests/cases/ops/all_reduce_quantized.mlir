// all_reduce_quantized: both parts are added as the floats that they stand for, and held in the range of the storage
// argument {"dtype": "int8", "shape": [6], "data": [5, 13, 100, -9, 23, 100]}
// result {"value": {"dtype": "int8", "shape": [3], "data": [-7, 33, 127]}, "compare": {"exact": true}}
module @jit_all_reduce_quantized {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>, %arg3: tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>
        stablehlo.return %2 : tensor<!quant.uniform<i8:f32, 5.000000e-01:3>>
      }) : (tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>
      sdy.return %1 : tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>
    } : (tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>
    return %0 : tensor<3x!quant.uniform<i8:f32, 5.000000e-01:3>>
  }
}
