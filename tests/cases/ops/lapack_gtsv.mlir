// lapack_gtsv: tridiagonal systems
// argument {"dtype": "float64", "shape": [3, 5], "base64": "AAAAAAAAAACJEnwJrnKhPysIgYVa9ee/FmIcWytO378t4hnG56nlvwAAAAAAAAAAnqD3+ZH45r9eRyhdK0byP1fP0cYvA+m/xZJU+h8uAsAAAAAAAAAAACQqhYxzEQDAVmatorBppL+nb+aiT/LwP/O+ucJyuuQ/"}
// argument {"dtype": "float64", "shape": [3, 5], "base64": "nH3C/R+CD0DtoQQUbmIQQIDPQOM4XRlAOINNswwxCUBMXEGGkwYPQOHEdPeBrw5AZywcVc6/EUAEUdCA2C8UQKJJymJ9EwxAwpCh/N5tCUD6/NIc098CQM+WxhgilwhAT/sCv1AlEkDCKB8Zvi4QQCQNRSRk4AdA"}
// argument {"dtype": "float64", "shape": [3, 5], "base64": "MIqzQMRm9b/lNTEwZWTov4c+LXBIdfw/uK36rH1i1D8AAAAAAAAAAIazLduh5fA/0DY6vTafA0D+KAGfw770P3PN5utb2ME/AAAAAAAAAABlQjkeHr/jPyI4muA5m+O/OFtv1IPw8L9ZiZU0m9qqPwAAAAAAAAAA"}
// argument {"dtype": "float64", "shape": [3, 5, 2], "base64": "UPQgHmzb178uke/iOB2gP/k5XkcjHuA/W1JiJxb94r9f7k+8NQfQv/W02QRPGP2/Eg3bhBNs8r8er2HQKeL5P6YsouVPgQHAtWEEmY6e1b+l9S8FsA7MP9uPfYlW9de/F92bKm3c6b/Uui52r0Wvv/ZSBdGZVnS//2mdcKUFtb8Ea3rdGwv+v62psEAf3sK/Q0zmSRVd6796caViDYfhvxrRyFCCDc0/pnidlNmA5D/vnEthZrLsP4sHQkU7xd+/j6JtRW6R7T+bjnCFlsfyPycZlT+rL/I/SpdjTn089j/osUJvuaXCvzn6NmD0Sca/"}
// result {"value": {"dtype": "float64", "shape": [3, 5, 2], "base64": "1xmkR8MZqb9Y6D5h5pixvyhG8OHPMcE/CYjzo13rzL86epFcjieuP8/UyDCPE9y/WKV8GaLU0r+RCzuCq5PcP76yGJzKsuO/ItaJDYvBgr+TqzdsGHzAPx4TYVmgCLe/cQX9Fiin0L8RX7N/7lecv+V47tV258Y/Zc0R5x0CU7+4DlCTvSbev5WSb52foaG/x5hPhvxi478dxQYPOjXJv4PLOFIhwHY/64tYVnY90D+VjrA5ci7WP0UL/Ut6crE/P2N3N+1w0D+N4/wUgn/UP5M8TYEFg8s/KkHe0eK20D+SW2ZEIHC4v5RvtM5Wcr2/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit_tridiagonal_solve attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xf64>, %arg1: tensor<3x5xf64>, %arg2: tensor<3x5xf64>, %arg3: tensor<3x5x2xf64>) -> (tensor<3x5x2xf64> {jax.result_info = "result"}) {
    %0:5 = stablehlo.custom_call @lapack_dgtsv_ffi(%arg0, %arg1, %arg2, %arg3) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [2], operand_index = 2, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [3], operand_index = 3, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, k], [i, l], [i, m, n])->([i, o], [i, p], [i, q], [i, r, s], [i]) {i=3, j=5, k=5, l=5, m=5, n=2, o=5, p=5, q=5, r=5, s=2}, custom>} : (tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5x2xf64>) -> (tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5x2xf64>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x5x2xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x5x2xi1>
    %6 = stablehlo.select %5, %0#3, %4 : tensor<3x5x2xi1>, tensor<3x5x2xf64>
    return %6 : tensor<3x5x2xf64>
  }
}
