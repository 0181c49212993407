// lapack_geqrf: QR factors, reflectors made into columns
// argument {"dtype": "float64", "shape": [3, 5, 3], "base64": "qL3uva4BmL9ne81AA0qyP7HmUYLvEui/Et+zCC8b3T/GwtuD7EHhv95Xfv+mSsK/Cb0dq2+78b9ktvoqKHXzvxF6lKZWXvU/7X40pTM64L9Mw9sV5KrSPyGqfNj6TKG/2qepFrk73L/jxGddN0HgvwQ1gfeiKeQ/8npMgMxR07+akwpmgWLDv4Z6qnU/wZY/kkRvY/rS8j8NypPzvsblP+JIVdWFfNg/9Tnt38YI4r8vXYg7ixz2vx0KbJiMYu4/q1RZiiLt7j/z7UCauwLCv+FfPcgcV+E/SfkD3ZQB6T/jeCQjEJnqPzZklTH5e+0/iXlE79Yo3b+H5W1PVD34P7MfDJAL8vO/xq08RjyT6z8peXhLlZzfP6jxNxKw9Os/9Ei+A2sQ/j9ftI3lScD3P4UzSAWlUvK/G/aufcwE+7+jFCOG9CPqP2KJs6h9PfC/iitIFP9nib/dRmkoDN/qPw5/iXP+TPq/"}
// result {"value": {"dtype": "float64", "shape": [3, 5, 3], "base64": "gGNBM2x5kb8/P+cvUbqyP6KTjFOeEu4/cJNJWLEv1T+fn8yZSmLmvwPjFUDYXNA/W4LObHvQ6b+gBrEIYo/cvwPRM97gxp8/u7UOB6mf17/l8vQ1N4ngP/3llVXE7sk/zhMNUgmN1L/iOuMABlbJv8l62VaX47i/OPYX2WYmxb+/MRwSXFGgP6Pp6yIvwsK/aqWPpZCb5D/XXwmMFIWsvwoITrFiMLE/ItUiqTS+079k8Gp07srovzJDVVADUt6/hT3166Ht4D8YrDu/Q3Xiv873Tetl19A/vHlpzh1g2z+1/2nK6wzQP4h1EWfnZOq/oBOImW2Jxb89IcckYNHkv+six63iasg/TIJ0vtpd1D8Y9LeZCPDCv7R5N1lwEug/62sMAng05j8uQB2Pjljfv4lZ2v72mse/uLD9F6f0479TRFb0nVDcvwPRJ7O71cA/pTf+NMPDcr96XxtnJhrWv1svO9yb1eK/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 3, 3], "base64": "g79y3iv79T/1cw3HUmrrP5mtzey70/S/AAAAAAAAAACPJRnrn9LyPw8Q3h/+Lua/AAAAAAAAAAAAAAAAAAAAALcWZvB0pei/puiIvgA7/T84FcB/GLvyP70YMFCzLeQ/AAAAAAAAAAD8sJMl2xT1PwREckf8zuq/AAAAAAAAAAAAAAAAAAAAABjAMg92t/C/iIzS17qpBUCIGB6dE9LaP4Tdr1QNWtU/AAAAAAAAAAAbJNsDNX8DwMXAQxApEwJAAAAAAAAAAAAAAAAAAAAAAFBhLU3gbvc/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x3xf64>) -> (tensor<3x5x3xf64> {jax.result_info = "result[0]"}, tensor<3x3x3xf64> {jax.result_info = "result[1]"}) {
    %0:2 = stablehlo.custom_call @lapack_dgeqrf_ffi(%arg0) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n]) {i=3, j=5, k=3, l=5, m=3, n=3}, custom>} : (tensor<3x5x3xf64>) -> (tensor<3x5x3xf64>, tensor<3x3xf64>)
    %1 = stablehlo.custom_call @lapack_dorgqr_ffi(%0#0, %0#1) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [i, l])->([i, m, n]) {i=3, j=5, k=3, l=3, m=5, n=3}, custom>} : (tensor<3x5x3xf64>, tensor<3x3xf64>) -> tensor<3x5x3xf64>
    %2 = stablehlo.slice %0#0 [0:3, 0:3, 0:3] : (tensor<3x5x3xf64>) -> tensor<3x3x3xf64>
    %3 = stablehlo.iota dim = 0 : tensor<3x3xi64>
    %c = stablehlo.constant dense<-1> : tensor<i64>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<3x3xi64>
    %5 = stablehlo.add %3, %4 : tensor<3x3xi64>
    %6 = stablehlo.iota dim = 1 : tensor<3x3xi64>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [1, 2] : (tensor<3x3xi1>) -> tensor<3x3x3xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x3x3xf64>
    %10 = stablehlo.select %8, %9, %2 : tensor<3x3x3xi1>, tensor<3x3x3xf64>
    return %1, %10 : tensor<3x5x3xf64>, tensor<3x3x3xf64>
  }
}
