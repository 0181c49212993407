// reduce_scatter: each device has its part of the sum
// argument {"dtype": "int32", "shape": [8], "data": [1, 2, 3, 4, 10, 20, 30, 40]}
// result {"value": {"dtype": "int32", "shape": [4], "data": [11, 22, 33, 44]}, "compare": {"exact": true}}
module @jit_reduce_scatter {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xi32>) {
      %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }) : (tensor<4xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<8xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
