// all_gather: every device has the whole afterwards
// argument {"dtype": "int32", "shape": [4], "data": [1, 2, 3, 4]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [1, 2, 3, 4]}, "compare": {"exact": true}}
module @jit_all_gather {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2xi32>) -> tensor<4xi32>
      sdy.return %1 : tensor<4xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
