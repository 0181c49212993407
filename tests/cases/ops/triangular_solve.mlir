// triangular_solve: a x = b with a unit diagonal; x a^H = b in complex numbers
// argument {"dtype": "float64", "shape": [2, 3, 3], "base64": "+BF0gZtM+T++sr3m73arvz1SQylKnNs/jk0IPVkt0j+TD6AVQ04QQGHRjtHBN/O/OzhhOUcg+L+hmtWSxZnOPxI8IAInpAtAxeijFrN6FEBwqXMWSrvjP/4Oc2ti9+u/uzbg3v7K6T9aVNdCJjwBQEAJnen7xfe/IqQySHDfBEB2/y2xUtrUP4zubgk4uA1A"}
// argument {"dtype": "float64", "shape": [2, 3, 2], "base64": "AqYfipoI4j/y4yg3RP78P+LRNRnNLtI/wDKs7rB78z9WNbcwwW/wv7C8UppKRva/mEmOcS3T9j/5EQyBBpn3P1jUP6rdV+A/pB0aSL/vzD9mgrJPRkXFPyTQrx1rBea/"}
// argument {"dtype": "complex64", "shape": [2, 3, 3], "base64": "hjyRQKofU79qrCg/QU0MPwWDAT9Cdpe+fpPAPnJDTz+AiIFAG3tJQAdIAT9G9UY/5s8+P98MOT+Hn5W/ZU5lv2KkYEBOmSS/jv2lQBMmiL/svQS/M1gIv7frA76Ivou/bFZkP3LhKL90RH1ALbtVvnTaHz/OEoC/hw3Pv/mktb9lcQA/cESuv1p96D9ZaOg+"}
// argument {"dtype": "complex64", "shape": [2, 4, 3], "base64": "x7h0PQGwFb8DUoM/bLL+Py+whT88B4y/OmiuvqIfGz/6hys/souZv/piuL+7qau/Dx0SQMyJIz4CA5k/f3QtP7cxXL4MG6O/uOOUvyKSlz+6lcI+cy9Mv5Je778+XwY+XYBHv2Bywj6Trj8/Dz0YPwGFmj22Hua/u1/7vg8tzz+rY3M/rNEPP/bxhL9k59m+R8SRPnoXg7/Z6v6+VtfYv0XtWL8eQ66/NkLtPheBCz9ZLX6/KKGuvvN08z+E1ZC/"}
// result {"value": {"dtype": "float64", "shape": [2, 3, 2], "base64": "AqYfipoI4j/y4yg3RP78P5SNex+fwb8/fuLpE0V/5j8geEM5qITKv6jLq8srwfI/mEmOcS3T9j/5EQyBBpn3P9B+Swuvc+S/Are2L47O7r/ZyWoU6ccKwInVXyzi4xDA"}, "compare": {"rtol": 1e-09, "atol": 1e-10}}
// result {"value": {"dtype": "complex64", "shape": [2, 4, 3], "base64": "6WHnvWgSLb5/3sq9rt4AP3I+bj4/ZbW+25YTvUR0gz7A+a8+oV2mvX757b6ZCJi+JejdPrMiwLyYnBM+PLGYPtMp/b2zR66+oJsUvu+qtD5cwm4+xs4EvnFEAr8yuwU+fnGbvqZNsD2WyJi9PnVsPjQ5iz5v/mu/1XIivUVt1j4cv3g+gFmdPh5Z977qyLW+aH5Lvu8K5r1MlZq+wkpevjONhr6EslC/vURvvc2F1b395Qe/jeKUvlHqkD+uGK6+"}, "compare": {"rtol": 0.0002, "atol": 2e-05}}
module @jit_triangular_solve {
  func.func public @main(%arg0: tensor<2x3x3xf64>, %arg1: tensor<2x3x2xf64>, %arg2: tensor<2x3x3xcomplex<f32>>, %arg3: tensor<2x4x3xcomplex<f32>>) -> (tensor<2x3x2xf64>, tensor<2x4x3xcomplex<f32>>) {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
    %1 = "stablehlo.triangular_solve"(%arg2, %arg3) <{left_side = false, lower = false, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<2x3x3xcomplex<f32>>, tensor<2x4x3xcomplex<f32>>) -> tensor<2x4x3xcomplex<f32>>
    return %0, %1 : tensor<2x3x2xf64>, tensor<2x4x3xcomplex<f32>>
  }
}
