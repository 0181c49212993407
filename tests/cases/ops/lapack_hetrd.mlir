// lapack_hetrd: tridiagonal form of Hermitian matrices
// argument {"dtype": "complex64", "shape": [3, 4, 4], "base64": "wc1AwAAAAACmgLC/Wb8sP4purT+ubcy9HxpBPxp08T2mgLC/Wb8sv57D3r8AAAAAkSr9v1hX+b9eWt2+8Nc0vopurT+ubcw9kSr9v1hX+T/7FUC+AAAAAHDNLD7OyYq/HxpBPxp08b1eWt2+8Nc0PnDNLD7OyYo/H/FuQAAAAADaRoy+AAAAAGIewb8Tp5s+hPMsvmrtbEBGHce/P4PSP2Iewb8Tp5u+JDvwvQAAAAB0FUu/9LkQP2LXvD6CvbW/hPMsvmrtbMB0FUu/9LkQv6JUu74AAAAAdFSjv9DzbL9GHce/P4PSv2LXvD6CvbU/dFSjv9DzbD/Vg+8+AAAAANI3EbwAAAAAzkj9v7C2NkDTVl8+xbdavgxxFMAQB3m/zkj9v7C2NsCEtRa/AAAAAFjuDsAJxxG/NXg2vubvQL7TVl8+xbdaPljuDsAJxxE/HUBZvwAAAAB2HG2/REKQvwxxFMAQB3k/NXg2vubvQD52HG2/REKQP43FOz4AAAAA"}
// result {"value": {"dtype": "complex64", "shape": [3, 4, 4], "base64": "wc1AwAAAAACmgLC/Wb8sP4purT+ubcy9HxpBPxp08T0yAQxAAAAAAF4H+T8AAAAAkSr9v1hX+b9eWt2+8Nc0vjpovr5UkS09iCn+vwAAAACwfMu+AAAAAHDNLD7OyYq/sOdKvi97kD12y5M+ML2VPonAWkAAAAAAyM6DPgAAAADaRoy+AAAAAGIewb8Tp5s+hPMsvmrtbEBGHce/P4PSP3huk0AAAAAA2FK0vwAAAAB0FUu/9LkQP2LXvD6CvbW/gsVrPVY5Gj9dSY+/AAAAAOAoor0AAAAAdFSjv9DzbL9Ou4g+TOKCPrmUXD4qUzm+K8rHvwAAAACCfbw/AAAAANI3EbwAAAAAzkj9v7C2NkDTVl8+xbdavgxxFMAQB3m/85SJQAAAAACwlR6+AAAAAFjuDsAJxxG/NXg2vubvQL72ayq9wmp3vJM5K8AAAAAAc2+jvwAAAAB2HG2/REKQv/axfT4hA4m+qKbpvC36GT195HO+AAAAAHMANj4AAAAA"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
// result {"value": {"dtype": "float32", "shape": [3, 4], "base64": "wc1AwF4H+T+wfMu+yM6DPtpGjL7YUrS/4CiivYJ9vD/SNxG8sJUevnNvo79zADY+"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
// result {"value": {"dtype": "float32", "shape": [3, 3], "base64": "MgEMQIgp/r+JwFpAeG6TQF1Jj78ryse/85SJQJM5K8B95HO+"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
// result {"value": {"dtype": "complex64", "shape": [3, 3], "base64": "J6/QP23vnT7BCbo/Qagcv7Og3j/iYyw/mOqpPzgjhz2n3+A/GcnSPrbZ/z+59UU9P+m6PxX9KT+qCuY/MtkYP8YfiT9LWX8/"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
module @jit_tridiagonal attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x4xcomplex<f32>>) -> (tensor<3x4x4xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<3x3xf32> {jax.result_info = "result[2]"}, tensor<3x3xcomplex<f32>> {jax.result_info = "result[3]"}) {
    %0:5 = stablehlo.custom_call @lapack_chetrd_ffi(%arg0) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o], [i, p], [i]) {i=3, j=4, k=4, l=4, m=4, n=4, o=3, p=3}, custom>} : (tensor<3x4x4xcomplex<f32>>) -> (tensor<3x4x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xcomplex<f32>>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<3x4x4xcomplex<f32>>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x4x4xi1>
    %6 = stablehlo.select %5, %0#0, %4 : tensor<3x4x4xi1>, tensor<3x4x4xcomplex<f32>>
    %7 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x4xi1>
    %10 = stablehlo.select %9, %0#1, %8 : tensor<3x4xi1>, tensor<3x4xf32>
    %11 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x3xi1>
    %14 = stablehlo.select %13, %0#2, %12 : tensor<3x3xi1>, tensor<3x3xf32>
    %15 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_2 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<complex<f32>>) -> tensor<3x3xcomplex<f32>>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x3xi1>
    %18 = stablehlo.select %17, %0#3, %16 : tensor<3x3xi1>, tensor<3x3xcomplex<f32>>
    return %6, %10, %14, %18 : tensor<3x4x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xcomplex<f32>>
  }
}
