"""Texts that JAX never prints and that are not by XLA either: it refuses them, or does not do what the specification says. They
are written by hand, and the functions beside them say what they mean."""
import numpy as np

from ingredients import integers
from program import Program, main, program
import jax
import jax.numpy as jnp
from jax import lax

REGIONS = """module @captured {
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
"""


def meaning(x, limit, factor, places):
    """What REGIONS computes: sums of numbers that are not negative reach the limit in any order."""
    order = jnp.argsort(jnp.abs(x - factor), axis=1, stable=True)
    looped = lax.fori_loop(0, factor, lambda i, y: y + i, x)
    return (jnp.minimum(x.sum(1), limit), jnp.minimum(x[:, :-1] + x[:, 1:], limit), jnp.take_along_axis(x, order, 1),
            jnp.arange(6, dtype=x.dtype).at[places[:, 0]].add(jnp.array([5, 6, 7], x.dtype) * factor), x * factor + 1, looped)


def arguments():
    return np.abs(np.asarray(integers(9, 8, 6))), np.int32(11), np.int32(3), np.array([[4], [0], [4]], np.int32)


@program
def captured_values():
    """Not by XLA: scalars from around them in the regions of a reduction, windows, a sort, a scatter, maps, and a map in a loop."""
    return Program(jax.jit(meaning), arguments(), text=lambda _: REGIONS)


BITS = """module @bits {
  func.func public @main(%x: tensor<3x4xui8>, %y: tensor<5x16xi1>) -> (tensor<3x4x8xi1>, tensor<5xi16>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<3x4xui8>) -> tensor<3x4x8xi1>
    %1 = stablehlo.bitcast_convert %y : (tensor<5x16xi1>) -> tensor<5xi16>
    return %0, %1 : tensor<3x4x8xi1>, tensor<5xi16>
  }
}
"""


def packed(x, y):
    pairs = jnp.packbits(y, axis=-1, bitorder="little")
    return jnp.unpackbits(x[..., None], axis=-1, bitorder="little").astype(bool), lax.bitcast_convert_type(pairs, jnp.int16)


@program
def bits_of_booleans():
    """Not by XLA: bitcast_convert between booleans, one bit each, and integers of 8 and 16 bits."""
    return Program(jax.jit(packed), (integers(256, 3, 4, dtype=np.uint8), integers(2, 5, 16, dtype=bool)), text=lambda _: BITS)


if __name__ == "__main__":
    main()
