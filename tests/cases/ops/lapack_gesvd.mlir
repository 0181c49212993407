// lapack_gesvd: singular values by QR iteration
// argument {"dtype": "float64", "shape": [3, 4, 3], "base64": "P4qBwkGL1z8pqKA1arnnv+hWZWfmIdW/9tNPByVY479ugN5DWtzVvxcSpx/meQLAcboGjZ148z/v6wOS0jbQP3iP8JdKyPE/ZJVkoG6t/z8MDRbKpiKXPwBcP2bH1vy/aI2WmLia7L8+jq0Se0/zv2z7X2lbD+C/2mP8VM9jtD/RqALCegQAwPZW5VQe69U/rYryvGsq+L/TUaxPCAjTP+WZvJecB7y/PILVwogS1L9GxHcg87Kyv0dblYvcReG/dfRktl2Z4797qx73kez6v+V4YnGfVp6/za4sW06H/T9UqU+XG7D/P3EBRzUqJvU/geYjPe2V5j+MKSqluaXlv0ysutmBFfc/n/N0NcC8rL+jf+1N06GxvwxIvR93o9K/"}
// result {"value": {"dtype": "float64", "shape": [3, 4, 4], "base64": "HlsIEgFqw7+DIbPeXIG3v0i1WfFzfO8/hMEMNSkQlT8k34QAm5vlv0YEDBCrUdw/hUkXCM3bqb8qiGrBmNDivzXqjD2aTtE/fhiu2mAB47+SP4q6QjphP1FGvXEuP+i/YUXPDJhq5b/JWpBkr0zlv+2eh5lC6cW/u3qwxMYS0j/byABkhHHiv7MFwGh/Fdq/OrAFVXC52j/vmY879U7iv+OHiTPDE+q//hnxYOP80z8Al+j9KsnVv8gqzeWIZtY/tCl1dVhKeb98DJWmxl/qv66fCbRs1uC/MdYdCqbKyj/k13+UVxyvv+tYxQOmk86/45jHsfMN5T+H69mZPMXmPyihdOli1Ny/jeCTpklZ3j/Lfd2NNT7ePzJJYQDz5uK/WHEVR4sQ7D9AsLJAGOy0P0bVI/kfOdU/hoPhUIKg1b/L72oIFQfEPxXpxMG84us/C2EJ1urTyb97TFUYE87aP8g7lF98Ba6/jut/lvhguL/qlRb+nVHpPxjtG4RCPeM/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 3], "base64": "fnzatHynCUBoGMKaCi8DQFPhapG0M+c/sKdIwfMHA0BKjMpfPDX9P6inRrzR3OQ//+iJrjBwC0DkMAns3W/+P87EBJYzj8Y/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "float64", "shape": [3, 3, 3], "base64": "FpiBMv2vyb93gWMF0Ka/Pz3EjS0sGe8/vdSCrDtA778UAloIfIm6v1d9ukIbIMi/zycbwdjSsz9WeN5eq5Tvv4q7cG08HsI/efm6D4XByT/XKwpiCVfvPwFkWSyjyZI/lT2lnun07T+FubzP8lDJv59/wdT4mtI/7Bi6DzB00j+g4pmd6SelvxThemjCnO6/vKlfQ4u84j+9Kt9JAVTmP0Hvlk50ado/Ncs1QPQs0D+yE93ZoIHkv+u4ZXZMMuc/4sPE0eyl6D8PWiCOBH3UvyX60ZNspuG/"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x3xf64>) -> (tensor<3x4x4xf64> {jax.result_info = "result[0]"}, tensor<3x3xf64> {jax.result_info = "result[1]"}, tensor<3x3x3xf64> {jax.result_info = "result[2]"}) {
    %0:5 = stablehlo.custom_call @lapack_dgesvd_ffi(%arg0) {backend_config = "", mhlo.backend_config = {mode = 65 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o, p], [i, q, r], [i]) {i=3, j=4, k=3, l=4, m=3, n=3, o=4, p=4, q=3, r=3}, custom>} : (tensor<3x4x3xf64>) -> (tensor<3x4x3xf64>, tensor<3x3xf64>, tensor<3x4x4xf64>, tensor<3x3x3xf64>, tensor<3xi32>)
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
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3x4x4xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x4x4xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<3x4x4xi1>, tensor<3x4x4xf64>
    %11 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst_1 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<3x3x3xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<3x1x1xi1>) -> tensor<3x3x3xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<3x3x3xi1>, tensor<3x3x3xf64>
    return %10, %6, %14 : tensor<3x4x4xf64>, tensor<3x3xf64>, tensor<3x3x3xf64>
  }
}
