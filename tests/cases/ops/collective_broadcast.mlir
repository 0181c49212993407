// collective_broadcast: the first of the group is device 1
// argument {"dtype": "int32", "shape": [4], "data": [1, 2, 3, 4]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [3, 4, 3, 4]}, "compare": {"exact": true}}
module @jit_collective_broadcast {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
