// chlo_zeta: Hurwitz: poles at whole q not above zero, no value below x = 1
// argument {"dtype": "float64", "shape": [9], "data": [2.0, 3.5, 1.0, 4.0, 0.5, 2.0, 2.5, 2.0, 3.0]}
// argument {"dtype": "float64", "shape": [9], "data": [1.0, 0.25, 2.0, 10.0, 1.0, 0.0, -0.5, -1.5, -2.0]}
// result {"value": {"dtype": "float64", "shape": [9], "data": [1.6449340668482266, 128.54695896428433, "Infinity", 0.00038665021738164474, "NaN", "Infinity", "NaN", 9.379246644989124, "NaN"]}, "compare": {"rtol": 1e-13, "atol": 0}}
module @jit_chlo_zeta {
  func.func public @main(%arg0: tensor<9xf64>, %arg1: tensor<9xf64>) -> tensor<9xf64> {
    %0 = chlo.zeta %arg0, %arg1 : tensor<9xf64>, tensor<9xf64> -> tensor<9xf64>
    return %0 : tensor<9xf64>
  }
}
