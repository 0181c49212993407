// fft_real: to half of the values, of even and odd lengths
// argument {"dtype": "float32", "shape": [3, 3, 10], "base64": "aMyXPypPBL+zAZ69isaQPrJnir/7bH2/5QTHPeD+o76hIoi/iufFPovMhr66u4I/O8apu8XBmb7CvAI+bhwwvhEFK78wzc2+7dk/Px+CJT8do6Q/B7TYvy5Dyb44Q9S+IuUvPiiB5772XwO/C3FIP5NcNj5rS5W/GtGqPyQrfz8F7xK/y85UP6gzPL/jFpA/Jw9fvhSHTb+KB7++dg1Ev0LARD7JTjM+IaYSPVp+Dr8qT2rAmSC+Pc+38r+DDHo+2b2QP706jD48ZMe+1jE4vpJBCL4Zmwy/OnMVv3KEbL+zFZg/KNN+vDTOdD+xBoC+r8yTPcp4Lr7Z+Ow+ZZ5TPyF1dT43fyy/DqtHv7Nf1D8ZYY++VwuVvl2Fuz8JP4s/mqkIP7R9zL7KmhZA3DPJPj4HDD9yNi++Bwi1v3zZqr9yX9A+3p3IPh/Cdb68+ZW/P4i4vwvcp75mYrq/UR9mP4WKkz/lDjVA"}
// argument {"dtype": "float32", "shape": [5, 9], "base64": "atlgP/7EF79wJV+/HelcwKhKGL+kODW+N8J3P9SRHD8XnhY/MsFaPmYxKT/1Srk/402Iv0cj6r5nu7G/QzDPP8//pT+ylUA/ImqZv3EYMT5NRXC+p4ilPQqiQL6hGwU/dCjKviLFWj83MHc+FA6WvmET5b2slOG+tFpQP2X9ir7g+5Y+QenIvtEXvr919mc/sXCHv37dLT9EHtc+5/jTv6fWcb8ZnAO/lBpSvxhOl7/pdj0/"}
// result {"value": {"dtype": "complex64", "shape": [3, 3, 6], "base64": "bdlkwAAAAAAADIZAQPWdP4xPzz6MsZk/t1Z2QABjaD5TrTdAEJxxP197QkAAAAAAkLatvyJeI8A0CYU+AmtUwCDbjT9c5Lu/Yw4BQHh4CEG4rfq/CJ5/QIp0mL/J2npAkLatvyJeI0AGN0hASUicPzC+Zj/8ypi/LRIjQADWYLxO+aQ/soiKwIp0mL/J2nrA/PaAwAAAAADaCM1A/ThWQOAZ8r50T3vAZsIlwAoSez9YKcJACJS+wCz/WsAAAAAAKKNPQIUxK0Bfp8y/UFgWwdD/lkBQlUY/LzYPQEIsqT+9urQ/vqPcwDmFm7/rpsxAKKNPQIUxK8A2oQ3AoIBxvpQ8lkCgL/K95esPQEH9VMC6UE0/dxBmQDmFm7/rpszAH12lQAAAAAAci5JAQK87PBjB4j4Abl27K/gwQE9NeMCUuZ8+OD66QCNn9r8AAAAA4mh8v/i337/2whzBlu+2QPrcAcEx+W7A+N2wvg94ZcAzhog/iBdIP7Pevr/BruDA4mh8v/i33z8sZLBA/nbvwEq4xL/Ni2FAQLaqQEC1gUBJYNw/uIoFv7Pevr/BruBA"}, "compare": {"rtol": 1e-05, "atol": 1e-05}}
// result {"value": {"dtype": "complex64", "shape": [5, 5], "base64": "ChcpwAAAAADOATNAZxfGQG7k4j9jOxvAlC+LvxV5zT3CR+U/o3M3QE8SRUAAAAAAv75OQBc59T9Z5HPAce/Xvxjqxr7vxxi/WADIPoqhV0BA+RW+AAAAABCmbb/IZ3I/6CKmv84hyz79hAzA1qWKvjj8Zb/AmuS/qMd6vwAAAACd6oC+Ndacv+IVuz9htqk/YrIuP1O0EUAtKS7AmDYVvyXDisAAAAAAtmEgQNQEK79AQM48CXy+vwOWSMD3F+g/OcX+v+vPrD8="}, "compare": {"rtol": 1e-05, "atol": 1e-05}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x10xf32>, %arg1: tensor<5x9xf32>) -> (tensor<3x3x6xcomplex<f32>> {jax.result_info = "result[0]"}, tensor<5x5xcomplex<f32>> {jax.result_info = "result[1]"}) {
    %0 = call @fft(%arg0) : (tensor<3x3x10xf32>) -> tensor<3x3x6xcomplex<f32>>
    %1 = call @fft_0(%arg1) : (tensor<5x9xf32>) -> tensor<5x5xcomplex<f32>>
    return %0, %1 : tensor<3x3x6xcomplex<f32>>, tensor<5x5xcomplex<f32>>
  }
  func.func private @fft(%arg0: tensor<3x3x10xf32>) -> tensor<3x3x6xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [3, 10] : (tensor<3x3x10xf32>) -> tensor<3x3x6xcomplex<f32>>
    return %0 : tensor<3x3x6xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<5x9xf32>) -> tensor<5x5xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [9] : (tensor<5x9xf32>) -> tensor<5x5xcomplex<f32>>
    return %0 : tensor<5x5xcomplex<f32>>
  }
}
