// partition_id: each device knows its place
// argument {"dtype": "int32", "shape": [2], "data": [10, 10]}
// result {"value": {"dtype": "int32", "shape": [2], "data": [10, 11]}, "compare": {"exact": true}}
module @jit_partition_id {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<2xi32>) -> tensor<2xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<1xi32>) {
      %2 = stablehlo.partition_id : tensor<ui32>
      %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
      %4 = stablehlo.reshape %3 : (tensor<i32>) -> tensor<1xi32>
      %1 = stablehlo.add %arg1, %4 : tensor<1xi32>
      sdy.return %1 : tensor<1xi32>
    } : (tensor<2xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
