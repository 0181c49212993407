// lapack_geqp3: QR factors with column pivots
// argument {"dtype": "float64", "shape": [3, 5, 4], "base64": "+OglQ5gl/78u1m9TZ4v2v0Rm52o0Wes/CmvSRHqZ5j+31yZ7MzHDv2CHC5s0XPu/LrfdkSzE17+m9OhrObjlv7Z2LNj/YOQ/w6d/BtUPAkAAoqLTYMTLP2XRCeQd8Oi/GvbOPZS68r8S5ci6Y7isv9HrJcwooca/1DSuWp9s8r9wLATsdMm9P57e6EskavK/womb/jDL8T+Y9O7rnQDxP0viiyQkW/E/v7D6yNdW3r8VQxLU83bgPyqn206n58C/a+UA/Evi2L/MW4D8j7TVv7ex/D2iy/S/DwWc0RAa97+SVTHaBmvpP+f51dZmesi/dkHRPM+zyz8Zled4AQfwP6qpmyPpuvu/ty3b85cX6b+kEERFX3HGP3JJarsUGNk/CFAo4Pwh2L/cjaKkhHfwP/gzwqo47so/HQ+9YwNq878jzUUd0cjtv+hc1j5rxuk/xW0VImqv3T9JJ6oJjmL+vwEY2MY6kPU/14KVlQkj4z9venc3VX71P9186iOOjti/ISZ2ydns0r+vqzXd9wXyvz3G/7qhSwRAscsIuEh1xr8w51Q0iWb5Pz7+tKietuS/0nZnib/4xD8kgt4a3L36v2WgqjblgNi/anHbkut67z+yze2FJAf0vxzV9RHYJ/E/"}
// result {"value": {"dtype": "float64", "shape": [3, 5, 4], "base64": "aGxwGxDJ2r/pG5CdWbHmP+3uq6FDytY/7nVrtyDhuj8BTAs24kDgv8f9bVH5dtC/bFlo58xT5b+6cQ4BNLHLP+P2QiSfdeU/D4VvuSYwvj/9VPnafYq6vw8cddH0auM/s4iuYbkPkb9pGX11ZpPiP6js+/1p0+C/n54suq6nyT/KC5Nh6+DVv/TBNb9sG9K/IfnCVSkZ2D+lRtC3HmHnP+DQoWstut6/k4WBO9CYxL+9PakQVoXgv39bNfLpD+a/WMwR/wMHxj+h6RkoZI3kv5LzoHzYOeG/e0relAm43D8dxpWxDIDWv2zVL5mgdNk/JprUC9YNkL8rniaqPEjLP2lrnuj8i+g/iQazXNbk1T8gOpthOG3Vv5sLbSfMTNa/Y1VQZchcxT9ZgtYS7R/hv87A5XGNa+I/ZeuveeVQ2b8IXBoUdbrCv2rWZvj2xOU/3St/24Al478LE+Tk6RfZP9XHgAfTHtu/kwUqTPRrn7+T3g8aGebgP52F3fKeIec/TXDPdtSb6b/i5S17U3TRv0rZkKsY08y/WljE/eBszr+9kESERHaqvx0d9AIXNuQ/CwjO4gfY4T+DFHIFeEnVv7yl5R9pRdk/2AASFPwO0L/pqGQo76ejv5fJ8Y8PVNk/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 4, 4], "base64": "H4bo4PvuCkCqbeo2TsP0P/QBch0tKeq/xCIiBiKn2b8AAAAAAAAAAF6R4ynuqv+/IhAPgfes2L/Mz8zgmtXTPwAAAAAAAAAAAAAAAAAAAAC040kz3qT8P3XiTt4fqPA/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+bSR0iJh7T9DPiPgLRMCwFYa2zYHGNy/4CXO7/a8yL+kF6g+lCPYvwAAAAAAAAAAKERP3zkLAUBkKrBxIzvjvwBQOe9AIuk/AAAAAAAAAAAAAAAAAAAAACGuOr5ikPQ/xhfRWteN3z8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABONZZaDZTwv0nWzqJUXAnAd5DtuDlz8T9H8L3Lsp3bv1jTuQ2hd+4/AAAAAAAAAABXVKjoqHQEwOLRtWvIJ+A/vPegvuMvxz8AAAAAAAAAAAAAAAAAAAAAg47YJZPhAUBkCj2cJurTvwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAOJKIad57fk/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "int32", "shape": [3, 4], "base64": "AQAAAAAAAAADAAAAAgAAAAAAAAADAAAAAQAAAAIAAAACAAAAAwAAAAAAAAABAAAA"}, "compare": {"exact": true}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x4xf64>) -> (tensor<3x5x4xf64> {jax.result_info = "result[0]"}, tensor<3x4x4xf64> {jax.result_info = "result[1]"}, tensor<3x4xi32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %1:3 = stablehlo.custom_call @lapack_dgeqp3_ffi(%arg0, %0) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [i, l])->([i, m, n], [i, o], [i, p]) {i=3, j=5, k=4, l=4, m=5, n=4, o=4, p=4}, custom>} : (tensor<3x5x4xf64>, tensor<3x4xi32>) -> (tensor<3x5x4xf64>, tensor<3x4xi32>, tensor<3x4xf64>)
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3x4xi32>
    %3 = stablehlo.subtract %1#1, %2 : tensor<3x4xi32>
    %4 = stablehlo.custom_call @lapack_dorgqr_ffi(%1#0, %1#2) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [i, l])->([i, m, n]) {i=3, j=5, k=4, l=4, m=5, n=4}, custom>} : (tensor<3x5x4xf64>, tensor<3x4xf64>) -> tensor<3x5x4xf64>
    %5 = stablehlo.slice %1#0 [0:3, 0:4, 0:4] : (tensor<3x5x4xf64>) -> tensor<3x4x4xf64>
    %6 = stablehlo.iota dim = 0 : tensor<4x4xi64>
    %c_1 = stablehlo.constant dense<-1> : tensor<i64>
    %7 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<4x4xi64>
    %8 = stablehlo.add %6, %7 : tensor<4x4xi64>
    %9 = stablehlo.iota dim = 1 : tensor<4x4xi64>
    %10 = stablehlo.compare GE, %8, %9, SIGNED : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<4x4xi1>) -> tensor<3x4x4xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x4x4xf64>
    %13 = stablehlo.select %11, %12, %5 : tensor<3x4x4xi1>, tensor<3x4x4xf64>
    return %4, %13, %3 : tensor<3x5x4xf64>, tensor<3x4x4xf64>, tensor<3x4xi32>
  }
}
