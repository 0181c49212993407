module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>}, %arg1: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {?}]>}, %arg2: tensor<64x16xf32>, %arg3: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) -> (tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %v1 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>, indices_are_sorted = false} : (tensor<32x16xf32>, tensor<4x1xi32>) -> (tensor<4x16xf32>)
    %v2 = "stablehlo.reshape"(%arg0) {} : (tensor<32x16xf32>) -> (tensor<512xf32>)
    %v11 = "func.call"(%arg0, %arg2, %arg3) {callee = @f1} : (tensor<32x16xf32>, tensor<64x16xf32>, tensor<32x32xf32>) -> (tensor<32x32xf32>)
    %v12 = "stablehlo.reshape"(%v1) {} : (tensor<4x16xf32>) -> (tensor<64xf32>)
    return %v12 : tensor<64xf32>
  }
  func.func private @f1(%arg0: tensor<32x16xf32>, %arg1: tensor<64x16xf32>, %arg2: tensor<32x32xf32>) -> (tensor<32x32xf32>) {
    %v7 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"y", "z"}, {}]>, <@mesh, [{"x", "z"}, {"y"}]>, <@mesh, [{}, {"x", "z", ?}]>] out_shardings=[<@mesh, [{"y":(1)2}, {"x", ?}]>] manual_axes={"x"} (%v3a0: tensor<32x16xf32>, %v3a1: tensor<32x16xf32>, %v3a2: tensor<32x16xf32>) {
    %v4 = "stablehlo.multiply"(%v3a0, %v3a1) {} : (tensor<32x16xf32>, tensor<32x16xf32>) -> (tensor<32x16xf32>)
    %v5 = "stablehlo.slice"(%v3a0) {start_indices = array<i64: 0, 8>, limit_indices = array<i64: 32, 16>, strides = array<i64: 1, 1>} : (tensor<32x16xf32>) -> (tensor<32x8xf32>)
    %v6 = "stablehlo.add"(%v4, %v3a2) {} : (tensor<32x16xf32>, tensor<32x16xf32>) -> (tensor<32x16xf32>)
    sdy.return %v6 : tensor<32x16xf32>
    } : (tensor<32x16xf32>, tensor<64x16xf32>, tensor<32x32xf32>) -> (tensor<32x32xf32>)
    %v8 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v9 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %v10 = "stablehlo.dynamic_slice"(%arg0, %v8, %v9) {slice_sizes = array<i64: 16, 16>} : (tensor<32x16xf32>, tensor<i32>, tensor<i32>) -> (tensor<16x16xf32>)
    return %v7 : tensor<32x32xf32>
  }
}
