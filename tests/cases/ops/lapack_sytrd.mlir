// lapack_sytrd: tridiagonal form
// argument {"dtype": "float64", "shape": [3, 5, 5], "base64": "osqC602V5T8ewZGUEUj5v8TtqiC/l+G/BYVBgbj69r8Zql6zH5HVPx7BkZQRSPm/jZ/KeSR5+r+EiwW9UoHiP7R2K46tM8a/rMsOH9pE+L/E7aogv5fhv4SLBb1SgeI/aYIOd054CMBttBN5G3jgvzHDsqOxdva/BYVBgbj69r+0diuOrTPGv220E3kbeOC/+uKELwv5B0AMNEwq15jIvxmqXrMfkdU/rMsOH9pE+L8xw7KjsXb2vww0TCrXmMi/dTJnDXjW079ghZhGgE3zP5gYjwVRKO0/VvqJ+qBWAcBG0lhcqwrzvxX1Vy8IbeW/mBiPBVEo7T9WQXzcJwD9v/6W1pTxh/2//zg4dqK4A8AEqWoHvMHzP1b6ifqgVgHA/pbWlPGH/b/cUCo9q1G+v4DQYE8XYpi/dLwVf1w9AsBG0lhcqwrzv/84OHaiuAPAgNBgTxdimL+ol+Xoi0joP5CRfzU9+de/FfVXLwht5b8EqWoHvMHzP3S8FX9cPQLAkJF/NT3517/WryFblhX/v1xtzFrrZAPAzbsC2C3d/b9UxqPAfHDTP9TuDFhUgfS/ap17u22o6D/NuwLYLd39v3J7enmgedQ/nnChJPHK7r8iW74CqpHgP8r8G03e6gDAVMajwHxw0z+ecKEk8cruv5huqdX3WgXAjqsy5zwZ2T9qsSjsnMX9P9TuDFhUgfS/Ilu+AqqR4D+OqzLnPBnZP/WeghwLQgZAyhd//xAuD8BqnXu7bajoP8r8G03e6gDAarEo7JzF/T/KF3//EC4PwNXH6b5AROK/"}
// result {"value": {"dtype": "float64", "shape": [3, 5, 5], "base64": "xsfnN+g6AcAvtaFwKQYAQHzITvGRssC/9v/6ImVz5D/nnUa1OMvCvx7BkZQRSPm/RjoBkLQsAEAAfypSrRn6P1o34I71QLC/fr0a/gEm5T/E7aogv5fhv4SLBb1SgeI/XerglfWd0T/Yx6l03e0AwHYlaQxGk+M/BYVBgbj69r+0diuOrTPGv220E3kbeOC/tJjHKBr48r8KegJg0dIAQBmqXrMfkdU/rMsOH9pE+L8xw7KjsXb2vww0TCrXmMi/dTJnDXjW07//VBAtzWXnP3pNB/qAxey/b/ySWyEpiD+o51PVr5voP6mWXQW01ss/mBiPBVEo7T8SW+ycF1YNwJ9ebktRXvK/MfhW+TpQwT9LO3j3g6vZv1b6ifqgVgHA/pbWlPGH/b9x0NdSh3gGQESE+1UfoAPAZvwg8+ay5z9G0lhcqwrzv/84OHaiuAPAgNBgTxdimL+wrOpC7aXEP1TtvgrHoQVAFfVXLwht5b8EqWoHvMHzP3S8FX9cPQLAkJF/NT3517/WryFblhX/v6zVRfl3iwnAq/zQQBXI8L9Ma1ZQpcrXvy3LiQg+fNG/B6e5+71/tr/NuwLYLd39v+hjY4UIt+c/Q6Ipof496L8vEe7is1B1P3DDgBlb384/VMajwHxw0z+ecKEk8cruvzMfHTN80P+/tadHj5LUAUDmq/DpTCrLv9TuDFhUgfS/Ilu+AqqR4D+OqzLnPBnZP72et+xPlwNA/EcCiAt7E0BqnXu7bajoP8r8G03e6gDAarEo7JzF/T/KF3//EC4PwNXH6b5AROK/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 5], "base64": "xsfnN+g6AcBGOgGQtCwAQF3q4JX1ndE/tJjHKBr48r91MmcNeNbTv/9UEC3NZec/ElvsnBdWDcBx0NdSh3gGQLCs6kLtpcQ/1q8hW5YV/7+s1UX5d4sJwOhjY4UIt+c/Mx8dM3zQ/7+9nrfsT5cDQNXH6b5AROK/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 4], "base64": "L7WhcCkGAEAAfypSrRn6P9jHqXTd7QDACnoCYNHSAEB6TQf6gMXsv59ebktRXvK/RIT7VR+gA8BU7b4Kx6EFQKv80EAVyPC/Q6Ipof496L+1p0ePktQBQPxHAogLexNA"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 4], "base64": "AAAAAAAAAAC01Yu77Xb/PybJ9trMp/Y/1KFVyEl28T8AAAAAAAAAAA5N9yvc/v8/18lr7kLh8z/UBSV6bDfyPwAAAAAAAAAAZuDeMV8d/D8QvuqGzsb9P5iKU5Hyzfw/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x5xf64>) -> (tensor<3x5x5xf64> {jax.result_info = "result[0]"}, tensor<3x5xf64> {jax.result_info = "result[1]"}, tensor<3x4xf64> {jax.result_info = "result[2]"}, tensor<3x4xf64> {jax.result_info = "result[3]"}) {
    %0:5 = stablehlo.custom_call @lapack_dsytrd_ffi(%arg0) {backend_config = "", mhlo.backend_config = {uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o], [i, p], [i]) {i=3, j=5, k=5, l=5, m=5, n=5, o=4, p=4}, custom>} : (tensor<3x5x5xf64>) -> (tensor<3x5x5xf64>, tensor<3x5xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x5x5xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x5xi1>
    %6 = stablehlo.select %5, %0#0, %4 : tensor<3x5x5xi1>, tensor<3x5x5xf64>
    %7 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_0 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3x5xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x5xi1>
    %10 = stablehlo.select %9, %0#1, %8 : tensor<3x5xi1>, tensor<3x5xf64>
    %11 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x4xi1>
    %14 = stablehlo.select %13, %0#2, %12 : tensor<3x4xi1>, tensor<3x4xf64>
    %15 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst_2 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x4xi1>
    %18 = stablehlo.select %17, %0#3, %16 : tensor<3x4xi1>, tensor<3x4xf64>
    return %6, %10, %14, %18 : tensor<3x5x5xf64>, tensor<3x5xf64>, tensor<3x4xf64>, tensor<3x4xf64>
  }
}
