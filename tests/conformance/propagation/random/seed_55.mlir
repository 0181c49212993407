module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %arg1: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}]>}, %arg2: tensor<16xf32>, %arg3: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<i32>) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
    %v1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> (tensor<32xi32>)
    %v2 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> (tensor<i32>)
    %v3 = "stablehlo.broadcast_in_dim"(%v2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<32xi32>)
    %v4 = "stablehlo.compare"(%v1, %v3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<32xi32>, tensor<32xi32>) -> (tensor<32xi1>)
    %v5 = "stablehlo.select"(%v4, %arg0, %arg0) {} : (tensor<32xi1>, tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>)
    %v6 = "stablehlo.multiply"(%arg0, %arg1) {} : (tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>)
    %v12:2 = sdy.manual_computation(%arg0, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{?}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x", "y", ?}]>, <@mesh, [{?}]>] manual_axes={"x"} (%v7a0: tensor<32xf32>, %v7a1: tensor<8xf32>, %v7a2: tensor<16xf32>, %v7a3: tensor<i32>) {
    %v11:2 = sdy.manual_computation(%v7a0, %v7a0, %v7a1, %v7a2, %v7a3) in_shardings=[<@mesh, [{"y"}]>, <@mesh, [{?}]>, <@mesh, [{}]>, <@mesh, [{"y"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"y"}]>, <@mesh, [{?}]>] manual_axes={"y"} (%v8a0: tensor<8xf32>, %v8a1: tensor<32xf32>, %v8a2: tensor<8xf32>, %v8a3: tensor<4xf32>, %v8a4: tensor<i32>) {
    %v10:2 = "func.call"(%v8a2, %v8a3, %v8a4) {callee = @f1} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
    sdy.return %v10#0, %v10#1 : tensor<8xf32>, tensor<8xf32>
    } : (tensor<32xf32>, tensor<32xf32>, tensor<8xf32>, tensor<16xf32>, tensor<i32>) -> (tensor<32xf32>, tensor<8xf32>)
    sdy.return %v11#0, %v11#0 : tensor<32xf32>, tensor<32xf32>
    } : (tensor<32xf32>, tensor<16xf32>, tensor<32xf32>, tensor<i32>) -> (tensor<64xf32>, tensor<32xf32>)
    %v13 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 16>, limit_indices = array<i64: 32>, strides = array<i64: 1>} : (tensor<32xf32>) -> (tensor<16xf32>)
    %v14 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v15 = "stablehlo.dynamic_slice"(%arg0, %v14) {slice_sizes = array<i64: 16>} : (tensor<32xf32>, tensor<i32>) -> (tensor<16xf32>)
    return %v15 : tensor<16xf32>
  }
  func.func private @f1(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %v9 = "stablehlo.dynamic_update_slice"(%arg0, %arg1, %arg2) {} : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8xf32>)
    return %v9, %v9 : tensor<8xf32>, tensor<8xf32>
  }
}
