// cholesky: lower of three, the second not positive definite; upper of complex ones
// argument {"dtype": "float64", "shape": [3, 3, 3], "base64": "iKdZYU1MDkCQBvSuLVz8v00GFJ5/EPS/kAb0ri1c/L+nTbTEg6EeQLZ16jVtaAJATQYUnn8Q9L+2deo1bWgCQJ5yUJL99RZAIk6ZU/FlI8C+5MWCTCUIwIHtDWasth5AvuTFgkwlCMCAYH2+b8oYwJkYoVKYIQ1Age0NZqy2HkCZGKFSmCENQLX/Ug/MbCjA+a+U0bU9FUBClpum5pwCQNw0fGUsF6g/QpabpuacAkAi9R9rh0YbQF0OJxeAv9S/3DR8ZSwXqD9dDicXgL/Uv4bDQuD6OhJA"}
// argument {"dtype": "complex64", "shape": [2, 3, 3], "base64": "vFIHQeDKyrKJyYc/7gC5PvtSwj9yM0RAicmHP+sAub6WU8ZAcHJWMUq4sj+6+1W++1LCP3MzRMBKuLI/u/tVPvS7y0CMURYyAfY+QagEnjLlF5I/f1jOP0JrlT/8mkE/5ReSP39Yzr8/RqRA7NX8ssPLHz7rTxI/QmuVP/yaQb/Dyx8+7E8Sv1dynkAAJ68x"}
// result {"value": {"dtype": "float64", "shape": [3, 3, 3], "base64": "H/CmwSwj/z8AAAAAAAAAAAAAAAAAAAAAK5DmkU4l7b8chdtJlOcEQAAAAAAAAAAADW8MdMue5L9HDALIpv3kP2wqWuT9sgFAAAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/AAAAAAAA+H8AAAAAAAD4fwAAAAAAAPh/l/19yGlvAkAAAAAAAAAAAAAAAAAAAAAAo00Tonon8D/hlnT0BkQDQAAAAAAAAAAA/U4PgoTolD8xHfwBp1PCvzElbnciCgFA"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "complex64", "shape": [2, 3, 3], "base64": "JyA6QAAAAICNw7o+8HT+PWKjBT/O7YY/AAAAAAAAAICraB1AAAAAgBPB3z4SF1y+AAAAAAAAAIAAAAAAAAAAgFZsC0AAAACADxpdQAAAAIACJ6k+MuruPsAArT7lKWA+AAAAAAAAAICGUAxAAAAAgIG317xAZ5k+AAAAAAAAAIAAAAAAAAAAgIG7CkAAAACA"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
module @jit_cholesky {
  func.func public @main(%arg0: tensor<3x3x3xf64>, %arg1: tensor<2x3x3xcomplex<f32>>) -> (tensor<3x3x3xf64>, tensor<2x3x3xcomplex<f32>>) {
    %0 = stablehlo.cholesky %arg0, lower = true : tensor<3x3x3xf64>
    %1 = stablehlo.cholesky %arg1, lower = false : tensor<2x3x3xcomplex<f32>>
    return %0, %1 : tensor<3x3x3xf64>, tensor<2x3x3xcomplex<f32>>
  }
}
