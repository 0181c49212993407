// lapack_heevd: eigenvalues and vectors of Hermitian matrices
// argument {"dtype": "complex64", "shape": [3, 4, 4], "base64": "wc1AwAAAAACmgLC/Wb8sP4purT+ubcy9HxpBPxp08T2mgLC/Wb8sv57D3r8AAAAAkSr9v1hX+b9eWt2+8Nc0vopurT+ubcw9kSr9v1hX+T/7FUC+AAAAAHDNLD7OyYq/HxpBPxp08b1eWt2+8Nc0PnDNLD7OyYo/H/FuQAAAAADaRoy+AAAAAGIewb8Tp5s+hPMsvmrtbEBGHce/P4PSP2Iewb8Tp5u+JDvwvQAAAAB0FUu/9LkQP2LXvD6CvbW/hPMsvmrtbMB0FUu/9LkQv6JUu74AAAAAdFSjv9DzbL9GHce/P4PSv2LXvD6CvbU/dFSjv9DzbD/Vg+8+AAAAANI3EbwAAAAAzkj9v7C2NkDTVl8+xbdavgxxFMAQB3m/zkj9v7C2NsCEtRa/AAAAAFjuDsAJxxG/NXg2vubvQL7TVl8+xbdaPljuDsAJxxE/HUBZvwAAAAB2HG2/REKQvwxxFMAQB3k/NXg2vubvQD52HG2/REKQP43FOz4AAAAA"}
// result {"value": {"dtype": "complex64", "shape": [3, 4, 4], "base64": "1YMfPxF/0b1fskc+aIgqP5TzFb4Wb4I+TskmPtOvpr10jyU/v4otvlW9rL7FU5m+crMBP5mECb5hRIu+KJDpPNBU0zy9s8S+1dvqvirEnb4sv86+6F/1PmxKPD54PLG+WzifvQAAAACaDMa9AAAAANgL/j4AAAAAbvtbPwAAAACv/v8++rjPvhA5Rz7YuSg9LD9fPsDMv7wygwg/24jsvq8hdj5A7xE9KtkLPzSKGb8IjFQ+N8WnvryRMb43wKM++GTbPiGk4D4oVVy974rBPdz37L55Y+e+4s5evjHPw77WdcY+AAAAALz5Cb8AAAAACW8ePwAAAAA289a+AAAAAAxbBz+lNTQ+IHgfvvQ8Ar+8BIs8IB+7vdxeFb8fJ3W+NTZLPlqzFT/mUKo915/FPXgSC75epwq/NavqPSTcBj+U/m4+vianPk4TlL6LwUE/VGm9vQm3Vz4sEjm+X1ufvrxbxD4AAAAA61ZXvgAAAACwpko/AAAAAMJ12j4AAACA"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
// result {"value": {"dtype": "float32", "shape": [3, 4], "base64": "QYOLwLLPU8DyHv8/dQOPQAPZs8CO9IG/Fz8XQGfofkCAn6vABb5yv6fVWj5ut5pA"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x4xcomplex<f32>>) -> (tensor<3x4x4xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x4x4xcomplex<f32>>) -> tensor<3x4x4xcomplex<f32>>
    %1 = stablehlo.real %0 : (tensor<3x4x4xcomplex<f32>>) -> tensor<3x4x4xf32>
    %2 = stablehlo.imag %0 : (tensor<3x4x4xcomplex<f32>>) -> tensor<3x4x4xf32>
    %3 = stablehlo.negate %2 : tensor<3x4x4xf32>
    %4 = stablehlo.complex %1, %3 : tensor<3x4x4xcomplex<f32>>
    %5 = stablehlo.add %arg0, %4 : tensor<3x4x4xcomplex<f32>>
    %cst = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<3x4x4xcomplex<f32>>
    %7 = stablehlo.divide %5, %6 : tensor<3x4x4xcomplex<f32>>
    %8:3 = stablehlo.custom_call @lapack_cheevd_ffi(%7) {backend_config = "", mhlo.backend_config = {mode = 86 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i]) {i=3, j=4, k=4, l=4, m=4, n=4}, custom>} : (tensor<3x4x4xcomplex<f32>>) -> (tensor<3x4x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %10 = stablehlo.compare EQ, %8#2, %9, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_0 = stablehlo.constant dense<(0x7FC00000,0x7FC00000)> : tensor<complex<f32>>
    %12 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<complex<f32>>) -> tensor<3x4x4xcomplex<f32>>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x4x4xi1>
    %14 = stablehlo.select %13, %8#0, %12 : tensor<3x4x4xi1>, tensor<3x4x4xcomplex<f32>>
    %15 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x4xi1>
    %18 = stablehlo.select %17, %8#1, %16 : tensor<3x4xi1>, tensor<3x4xf32>
    return %14, %18 : tensor<3x4x4xcomplex<f32>>, tensor<3x4xf32>
  }
}
