// lapack_syevd: eigenvalues and vectors of symmetric matrices; the last is not finite
// argument {"dtype": "float64", "shape": [3, 5, 5], "base64": "osqC602V5T8ewZGUEUj5v8TtqiC/l+G/BYVBgbj69r8Zql6zH5HVPx7BkZQRSPm/jZ/KeSR5+r+EiwW9UoHiP7R2K46tM8a/rMsOH9pE+L/E7aogv5fhv4SLBb1SgeI/aYIOd054CMBttBN5G3jgvzHDsqOxdva/BYVBgbj69r+0diuOrTPGv220E3kbeOC/+uKELwv5B0AMNEwq15jIvxmqXrMfkdU/rMsOH9pE+L8xw7KjsXb2vww0TCrXmMi/dTJnDXjW079ghZhGgE3zP5gYjwVRKO0/VvqJ+qBWAcBG0lhcqwrzvxX1Vy8IbeW/mBiPBVEo7T9WQXzcJwD9v/6W1pTxh/2//zg4dqK4A8AEqWoHvMHzP1b6ifqgVgHA/pbWlPGH/b/cUCo9q1G+v4DQYE8XYpi/dLwVf1w9AsBG0lhcqwrzv/84OHaiuAPAgNBgTxdimL+ol+Xoi0joP5CRfzU9+de/FfVXLwht5b8EqWoHvMHzP3S8FX9cPQLAkJF/NT3517/WryFblhX/vwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/"}
// result {"value": {"dtype": "float64", "shape": [3, 5, 5], "base64": "gD/eG7khyL9DeK6LlJvTP0OMjvhztuW/ZwIroOW/2j/cOqc5CA/fv6ikhbrEDsy/lUkDVZyA6j9QMWV3ceOVP/b25Uaodd+/pHGxz1TPwz/zYlVGry3rv0LnhRR369m/xGTvHnLNwr9mQwEMg33Tv2TpGoj4yZE/oceyQMUiv78J/p4/yAWyPxLS0yDlxdG/hhh/wz1j2z/W4xzuKyfrPwsytmImLNu/9ux/Drr5zD9gLNEFwjzlP5FbMbf8wOE/Viu/S880wr8hf/UZWfzTvxWCv0yP38M/8mzO6dDD579OaJ7JuvvHP1v/cxi2SOG/aS8AuWm8178Mx8/QESrov8j5gKEvRNE/DrdEJ3Fwxr8s2dj5Pc3bvylCizMz3OO/o04a+Et4qT8UShQFWoLOv1LTIqZBSuG/SokKLN9t4D/iKd0ZjvzSv7GxvijYitS/ARluWJ1is79EA+UCd8ToP+Hzr3Zd69w/orBin8RI4b8XHM1jLojhP6qfxvwd6OE/Dq2uunSYyj85nmwcwSDNvwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 5], "base64": "6Nvibt50DsCcq7siFJwHwDWmH5fI+tO/NOckHTmQ/j/Y5bQK3nYOQABiKv3iOhHA0PBA83WTDsAPbpPt/gPiP2xA/9nRPu4/WjO/Mf/ZEkAAAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit_eigh attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x5xf64>) -> (tensor<3x5x5xf64> {jax.result_info = "result[0]"}, tensor<3x5xf64> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x5x5xf64>) -> tensor<3x5x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x5x5xf64>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %3 = stablehlo.divide %1, %2 : tensor<3x5x5xf64>
    %4:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%3) {backend_config = "", mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i]) {i=3, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<3x5x5xf64>) -> (tensor<3x5x5xf64>, tensor<3x5xf64>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %6 = stablehlo.compare EQ, %4#2, %5, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_0 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x5xi1>
    %10 = stablehlo.select %9, %4#0, %8 : tensor<3x5x5xi1>, tensor<3x5x5xf64>
    %11 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<3x5xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %14 = stablehlo.select %13, %4#1, %12 : tensor<3x5xi1>, tensor<3x5xf64>
    return %10, %14 : tensor<3x5x5xf64>, tensor<3x5xf64>
  }
}
