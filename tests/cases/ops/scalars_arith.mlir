// arith: scalars and signs as MLIR has them, where the same bits are read as signed or unsigned
// argument {"dtype": "int32", "shape": [3], "data": [-7, 2, 5]}
// result {"value": {"dtype": "int32", "shape": [9], "data": [-5, -14, -3, -1, 2147483644, 1, 2, -1, 1]}, "compare": {"exact": true}}
// result {"value": {"dtype": "float32", "shape": [2], "data": [-3.5, 2.0]}, "compare": {"exact": true}}
module @scalars {
  func.func public @main(%arg0: tensor<3xi32>) -> (tensor<9xi32>, tensor<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %cst = arith.constant 5.000000e-01 : f32
    %a = tensor.extract %arg0[%c0] : tensor<3xi32>
    %b = tensor.extract %arg0[%c1] : tensor<3xi32>
    %sum = arith.addi %a, %b overflow<nsw> : i32
    %product = arith.muli %a, %b : i32
    %quotient = arith.divsi %a, %b : i32
    %remainder = arith.remsi %a, %b : i32
    %unsigned = arith.divui %a, %b : i32
    %less = arith.cmpi ult, %b, %a : i32
    %bit = arith.extui %less : i1 to i32
    %chosen = arith.select %less, %b, %a : i32
    %sign = arith.extsi %true : i1 to i32
    %last = arith.trunci %a : i32 to i1
    %odd = arith.extui %last : i1 to i32
    %0 = tensor.from_elements %sum, %product, %quotient, %remainder, %unsigned, %bit, %chosen, %sign, %odd : tensor<9xi32>
    %real = arith.sitofp %a : i32 to f32
    %half = arith.mulf %real, %cst fastmath<contract> : f32
    %two = arith.uitofp %b : i32 to f32
    %1 = tensor.from_elements %half, %two : tensor<2xf32>
    return %0, %1 : tensor<9xi32>, tensor<2xf32>
  }
}
