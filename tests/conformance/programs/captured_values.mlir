module @captured {
  func.func public @main(%x: tensor<8x6xi32>, %limit: tensor<i32>, %factor: tensor<i32>, %places: tensor<3x1xi32>) -> (tensor<8xi32>, tensor<8x5xi32>, tensor<8x6xi32>, tensor<6xi32>, tensor<8x6xi32>, tensor<8x6xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %sums = "stablehlo.reduce"(%x, %zero) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %sum = stablehlo.add %a, %b : tensor<i32>
      %least = stablehlo.minimum %sum, %limit : tensor<i32>
      stablehlo.return %least : tensor<i32>
    }) {dimensions = array<i64: 1>} : (tensor<8x6xi32>, tensor<i32>) -> tensor<8xi32>
    %windows = "stablehlo.reduce_window"(%x, %zero) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %sum = stablehlo.add %a, %b : tensor<i32>
      %least = stablehlo.minimum %sum, %limit : tensor<i32>
      stablehlo.return %least : tensor<i32>
    }) {window_dimensions = array<i64: 1, 2>} : (tensor<8x6xi32>, tensor<i32>) -> tensor<8x5xi32>
    %sorted = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %da = stablehlo.subtract %a, %factor : tensor<i32>
      %db = stablehlo.subtract %b, %factor : tensor<i32>
      %fa = stablehlo.abs %da : tensor<i32>
      %fb = stablehlo.abs %db : tensor<i32>
      %before = stablehlo.compare LT, %fa, %fb, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %before : tensor<i1>
    }) {dimension = 1 : i64, is_stable = true} : (tensor<8x6xi32>) -> tensor<8x6xi32>
    %base = stablehlo.iota dim = 0 : tensor<6xi32>
    %updates = stablehlo.constant dense<[5, 6, 7]> : tensor<3xi32>
    %scattered = "stablehlo.scatter"(%base, %places, %updates) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %scaled = stablehlo.multiply %b, %factor : tensor<i32>
      %sum = stablehlo.add %a, %scaled : tensor<i32>
      stablehlo.return %sum : tensor<i32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<6xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<6xi32>
    %mapped = "stablehlo.map"(%x) ({
    ^bb0(%a: tensor<i32>):
      %scaled = stablehlo.multiply %a, %factor : tensor<i32>
      %sum = stablehlo.add %scaled, %one : tensor<i32>
      stablehlo.return %sum : tensor<i32>
    }) {dimensions = array<i64: 0, 1>} : (tensor<8x6xi32>) -> tensor<8x6xi32>
    %count, %looped = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x6xi32>
    cond {
      %more = stablehlo.compare LT, %i, %factor, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %more = "stablehlo.map"(%y) ({
      ^bb0(%a: tensor<i32>):
        %sum = stablehlo.add %a, %i : tensor<i32>
        stablehlo.return %sum : tensor<i32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<8x6xi32>) -> tensor<8x6xi32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %more : tensor<i32>, tensor<8x6xi32>
    }
    return %sums, %windows, %sorted, %scattered, %mapped, %looped : tensor<8xi32>, tensor<8x5xi32>, tensor<8x6xi32>, tensor<6xi32>, tensor<8x6xi32>, tensor<8x6xi32>
  }
}
