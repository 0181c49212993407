// all_reduce: the sum of both parts
// argument {"dtype": "int32", "shape": [4], "data": [1, 2, 30, 40]}
// result {"value": {"dtype": "int32", "shape": [2], "data": [31, 42]}, "compare": {"exact": true}}
module @jit_all_reduce {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<2xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }) : (tensor<2xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<4xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
