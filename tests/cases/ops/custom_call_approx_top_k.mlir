// custom_call_approx_top_k: along the first dimension, by the comparator that the call names
// argument {"dtype": "float32", "shape": [4, 2], "data": [[4.0, 1.0], [3.0, 9.0], [7.0, 2.0], [5.0, 8.0]]}
// result {"value": {"dtype": "float32", "shape": [2, 2], "data": [[7.0, 9.0], [5.0, 8.0]]}, "compare": {"exact": true}}
// result {"value": {"dtype": "int32", "shape": [2, 2], "data": [[2, 1], [3, 3]]}, "compare": {"exact": true}}
module @jit_top_k {
  func.func private @descending(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }
  func.func public @main(%arg0: tensor<4x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
    %0 = stablehlo.iota dim = 0 : tensor<4x2xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %0, %cst, %c) {called_computations = [@descending], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<4x2xf32>, tensor<4x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    return %1#0, %1#1 : tensor<2x2xf32>, tensor<2x2xi32>
  }
}
