// lapack_gesdd_values: singular values alone, of complex matrices
// argument {"dtype": "complex64", "shape": [3, 5, 3], "base64": "kY36PzUt5z74FiO+JkNUv80/Rr20t9K/ZD5LPsHmt78Z7qs/k1kqP5tT+Lz3JEK/9RO8P0u9EL7Zdne//KhZPkyAPr4EgB4/z+tKvmF4q75wWEk/qlf/PhjLhT/+2mO/eTXBv5Uyub4mRWq/DSCDv+53rD7A3ZA/JqAov6Xd3bzq3sK/QUM9v+nshD8UarS+pun8PsoMY77Dgfw+RFUzP59t877OPcy/QbSDPynDhL8TuHW+RpfBvv5XjD9MESJA42Jpv1+ndD+fqFq/x0DkvTyTUT6bRTY/CswzvwmtA0Bc6iw/kVpvvjkqhT6Imru+10dsv/cgmz+POpU9kgT9Pqvas7593Cs/BXRqP90aAr/+7iG/Skz2P0zb4L7f09o/0AmbP/ThED8dRQ9Ani0vP4Tf/z+kvgHAEXuBPfNAIz9zG2A+Z8RGvmBIxD/kKN4+rdf+vam1Lj8E8nm/y72uvnlc7z21Ydi/"}
// result {"value": {"dtype": "float32", "shape": [3, 3], "base64": "3v9qQMIZREDIPaY/EYZ9QF2TMkDZquY/mvKbQALXMUDi7tY/"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5x3xcomplex<f32>>) -> (tensor<3x3xf32> {jax.result_info = "result"}) {
    %0:5 = stablehlo.custom_call @lapack_cgesdd_ffi(%arg0) {backend_config = "", mhlo.backend_config = {mode = 78 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i, n], [i, o, p], [i, q, r], [i]) {i=3, j=5, k=3, l=5, m=3, n=3, o=5, p=5, q=3, r=3}, custom>} : (tensor<3x5x3xcomplex<f32>>) -> (tensor<3x5x3xcomplex<f32>>, tensor<3x3xf32>, tensor<3x5x5xcomplex<f32>>, tensor<3x3x3xcomplex<f32>>, tensor<3xi32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi1>) -> tensor<3x1xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<3x1xi1>) -> tensor<3x3xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<3x3xi1>, tensor<3x3xf32>
    return %6 : tensor<3x3xf32>
  }
}
