// lapack_gesdd: singular values and vectors of wide matrices; the second is not finite
// argument {"dtype": "float64", "shape": [3, 3, 5], "base64": "7ZRlYEDN07+wPixyKC7XPwqLuUKhCvC/kphBtTk7+r8CO5X83JTiP1JGUIxaO6y/ZuPOuvu80z9AEloUtyn7vxNt4DYHXte/4f63iwcy479dOzMqoKfrv8b2xU5FCgLAsuGEL5Fu1b/Kf4d7t7bsPy1W0EREYtg/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/0ANlYvQ647/8xN8dS3eOvwRwR820N+g/3ybb9VUVBsDR97CLoOG/vwR0akblYeE/p3ohaf/T5T+V1qbgMDb7P8n3cqglKfI/I4hLjAcB1D8oUZwrk1PTP2IJrAKoLuk/DZaIrypC4b82d1dbh5Okv2ifEvDo/+w/"}
// result {"value": {"dtype": "float64", "shape": [3, 3, 3], "base64": "wHrkVwSJ37+k6vxzvhjiP+jCVLzaKeW/21xvfy1x1b9djvg8KYDiP2g9ddOozuc/XOm5YfWy6T+07P98OtLiP/7FuzuEbLi/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/9/PatgPK7L/yl7RfIwrbv+ZhYEE3LLw/0BKn4eqT2z/dFz1+WsvsvxZlfHhHcLE/kxjALZf7sT/33D+WGdS7P7kzUOoYu+8/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 3], "base64": "DaxsNl+1BkCh1F2lHqQBQKNZvpM45PQ/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/UG/EBBvkCEC3/Q3tCfn/PxCEsqgBOPU/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 3, 5], "base64": "MZDd0MuWx7/63Ctat5fnv6dpdG8e5tE/7tabeBKc4j/4lGe7euqzP8HlopWCwdS/sjyso8df27/DILguTVTpv9flx/nJt9G/D13n01bgtz/j4Ojo6R7IP9In0Y3wGcQ/OHdJ1l7X278TLoBfU9HhP3XtxRpjPeW/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/6uK2IDdf0D/dtlSVbtW9P10tN3mckHI/vZtKY/6K7j/LYckSt4m5P7J6xK3J4rm/beX8jpO30L/vCHJhzJDuv86/+At2AbI/C/DO4XursL+GJAge3xbKPyxHhW8g6eM/Xnk4MsMy0L8X6wk2R7TJv4n65WrF3eU/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x5xf64>) -> (tensor<3x3x3xf64> {jax.result_info = "result[0]"}, tensor<3x3xf64> {jax.result_info = "result[1]"}, tensor<3x3x5xf64> {jax.result_info = "result[2]"}) {
    %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%arg0) {backend_config = "", mhlo.backend_config = {mode = 83 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o, p], [i, q, r], [i]) {i=3, j=3, k=5, l=3, m=5, n=3, o=3, p=3, q=3, r=5}, custom>} : (tensor<3x3x5xf64>) -> (tensor<3x3x5xf64>, tensor<3x3xf64>, tensor<3x3x3xf64>, tensor<3x3x5xf64>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x3xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x3xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<3x3xi1>, tensor<3x3xf64>
    %7 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_0 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3x3x3xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x3x3xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<3x3x3xi1>, tensor<3x3x3xf64>
    %11 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<3x3x5xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x3x5xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<3x3x5xi1>, tensor<3x3x5xf64>
    return %10, %6, %14 : tensor<3x3x3xf64>, tensor<3x3xf64>, tensor<3x3x5xf64>
  }
}
