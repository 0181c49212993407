// all_to_all: rows become columns of devices, the whole stays the same
// argument {"dtype": "int32", "shape": [4, 2], "data": [[1, 2], [3, 4], [5, 6], [7, 8]]}
// result {"value": {"dtype": "int32", "shape": [4, 2], "data": [[1, 2], [3, 4], [5, 6], [7, 8]]}, "compare": {"exact": true}}
module @jit_all_to_all {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x2xi32>) -> tensor<4x2xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%arg1: tensor<2x2xi32>) {
      %1 = "stablehlo.all_to_all"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x2xi32>) -> tensor<4x1xi32>
      sdy.return %1 : tensor<4x1xi32>
    } : (tensor<4x2xi32>) -> tensor<4x2xi32>
    return %0 : tensor<4x2xi32>
  }
}
