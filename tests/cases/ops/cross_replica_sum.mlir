// cross-replica-sum: two devices, each with its part
// argument {"dtype": "int32", "shape": [4], "data": [1, 2, 3, 4]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [4, 6, 4, 6]}, "compare": {"exact": true}}
module @jit_sum {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.cross-replica-sum"(%arg1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
