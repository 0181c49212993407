#!/usr/bin/env python3
"""Shapes that depend on data, against NumPy on the elements that are there, and the same over meshes: bounded_shapes_test.py BINARY.

Each program makes a value of a bounded type with a size that is an argument, and has one op (or a loop, a branch, a call) on it. The bounds
and the padding must not show, wherever the padding is: every program runs with several sizes, whole and over 2 and 3 devices.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, ok  # noqa: E402

F32 = np.float32
UP_TO_8 = "tensor<?xf32, #stablehlo.bounds<8>>"


def program(arguments, body, result, result_type):
    return f"func.func public @main({arguments}) -> ({result_type}) {{\n{body}\n return {result} : {result_type}\n}}"


VECTOR = np.arange(1, 9, dtype=F32)
MATRIX = np.arange(1, 33, dtype=F32).reshape(8, 4)
SIZED = f"%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> {UP_TO_8}\n"
ROWS = "tensor<?x4xf32, #stablehlo.bounds<8, ?>>"
SIZED_MATRIX = f"%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> {ROWS}\n"
VECTOR_ARGUMENTS = "%x: tensor<8xf32>, %n: tensor<i32>"
MATRIX_ARGUMENTS = "%x: tensor<8x4xf32>, %n: tensor<i32>"
ZERO = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
CASES = []


def add(name, text, arguments, sizes=(0, 1, 3, 5, 8)):
    """A case for each size n: its arguments are what the function `arguments` makes of n, or an array and n."""
    for n in sizes:
        CASES.append((f"{name}[{n}]", text, arguments(n) if callable(arguments) else [arguments, np.int32(n)]))


add("set", program(VECTOR_ARGUMENTS, SIZED, "%0", UP_TO_8), VECTOR)
add("set2", program(MATRIX_ARGUMENTS, SIZED_MATRIX, "%0", ROWS), MATRIX)
add(
    "neg",
    program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.negate %0 : {UP_TO_8}\n%2 = stablehlo.multiply %1, %0 : {UP_TO_8}", "%2", UP_TO_8),
    VECTOR,
)
add(
    "get",
    program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.get_dimension_size %0, dim = 0 : ({UP_TO_8}) -> tensor<i32>", "%1", "tensor<i32>"),
    VECTOR,
)
PAD_TO_STATIC = f"%1:2 = stablehlo.custom_call @PadToStatic(%0) : ({UP_TO_8}) -> (tensor<8xf32>, tensor<i32>)\n"
add("pad_to_static", program(VECTOR_ARGUMENTS, SIZED + PAD_TO_STATIC, "%1#0", "tensor<8xf32>"), VECTOR)
add("pad_to_static_size", program(VECTOR_ARGUMENTS, SIZED + PAD_TO_STATIC, "%1#1", "tensor<i32>"), VECTOR)
add(
    "slice_to_dynamic",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + PAD_TO_STATIC
        + "%2 = stablehlo.negate %1#0 : tensor<8xf32>\n"
        + f"%3 = stablehlo.custom_call @SliceToDynamic(%2, %1#1) : (tensor<8xf32>, tensor<i32>) -> {UP_TO_8}",
        "%3",
        UP_TO_8,
    ),
    VECTOR,
)
for op in ("add", "multiply", "maximum", "minimum"):
    add(
        "reduce_" + op,
        program(
            VECTOR_ARGUMENTS,
            SIZED
            + ZERO.replace("0.0", "1.0" if op == "multiply" else "0.0")
            + f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.{op} across dimensions = [0] : ({UP_TO_8}, tensor<f32>) -> tensor<f32>",
            "%1",
            "tensor<f32>",
        ),
        VECTOR,
    )
add(
    "reduce_minor",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX
        + ZERO
        + f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : ({ROWS}, tensor<f32>) -> {UP_TO_8}",
        "%1",
        UP_TO_8,
    ),
    MATRIX,
)
add(
    "reduce_major",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX
        + ZERO
        + f"%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : ({ROWS}, tensor<f32>) -> tensor<4xf32>",
        "%1",
        "tensor<4xf32>",
    ),
    MATRIX,
)
HALF_ROWS = "tensor<?x3xcomplex<f32>, #stablehlo.bounds<8, ?>>"
HALF_REAL = "tensor<?x3xf32, #stablehlo.bounds<8, ?>>"
add(
    "fft",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX
        + f"%1 = stablehlo.fft %0, type = RFFT, length = [4] : ({ROWS}) -> {HALF_ROWS}\n"
        + f"%2 = stablehlo.real %1 : ({HALF_ROWS}) -> {HALF_REAL}",
        "%2",
        HALF_REAL,
    ),
    MATRIX,
)
SQUARES = np.stack([np.array([[i + 2, 1], [1, 3]], F32) for i in range(8)])
BATCH = "tensor<?x2x2xf32, #stablehlo.bounds<8, ?, ?>>"
SIZED_BATCH = f"%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x2x2xf32>, tensor<i32>) -> {BATCH}\n"
BATCH_ARGUMENTS = "%x: tensor<8x2x2xf32>, %n: tensor<i32>"
add("cholesky", program(BATCH_ARGUMENTS, SIZED_BATCH + f"%1 = stablehlo.cholesky %0, lower = true : {BATCH}", "%1", BATCH), SQUARES)
add(
    "triangular_solve",
    program(
        BATCH_ARGUMENTS,
        SIZED_BATCH
        + '%1 = "stablehlo.triangular_solve"(%0, %x) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, '
        + f"unit_diagonal = false}}> : ({BATCH}, tensor<8x2x2xf32>) -> {BATCH}",
        "%1",
        BATCH,
    ),
    SQUARES,
)
CODES = "tensor<?xi32, #stablehlo.bounds<8>>"
add(
    "potrf",
    program(
        BATCH_ARGUMENTS,
        SIZED_BATCH
        + "%1:2 = stablehlo.custom_call @lapack_spotrf_ffi(%0) {mhlo.backend_config = {uplo = 76 : ui8}, "
        + "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]} "
        + f": ({BATCH}) -> ({BATCH}, {CODES})\n"
        + "%2 = stablehlo.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>\n"
        + "%3 = stablehlo.convert %2 : (tensor<2x2xi1>) -> tensor<2x2xf32>\n"
        + "%4 = stablehlo.broadcast_in_dim %3, dims = [1, 2] : (tensor<2x2xf32>) -> tensor<8x2x2xf32>\n"
        + f"%5 = stablehlo.set_dimension_size %4, %n, dim = 0 : (tensor<8x2x2xf32>, tensor<i32>) -> {BATCH}\n"
        + f"%6 = stablehlo.multiply %1#0, %5 : {BATCH}",
        "%6",
        BATCH,
    ),
    SQUARES,
)
COLUMNS = "tensor<4x?xf32, #stablehlo.bounds<?, 8>>"
add(
    "transpose",
    program(MATRIX_ARGUMENTS, SIZED_MATRIX + f"%1 = stablehlo.transpose %0, dims = [1, 0] : ({ROWS}) -> {COLUMNS}", "%1", COLUMNS),
    MATRIX,
)
add(
    "dot_contract",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX + f"%1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : ({ROWS}, {ROWS}) -> tensor<4x4xf32>",
        "%1",
        "tensor<4x4xf32>",
    ),
    MATRIX,
)
SQUARE = "tensor<?x?xf32, #stablehlo.bounds<8, 8>>"
add(
    "dot_free",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX + f"%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : ({ROWS}, {ROWS}) -> {SQUARE}",
        "%1",
        SQUARE,
    ),
    MATRIX,
)
add("reverse", program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.reverse %0, dims = [0] : {UP_TO_8}", "%1", UP_TO_8), VECTOR)
UP_TO_16 = "tensor<?xf32, #stablehlo.bounds<16>>"
add(
    "concat",
    program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.concatenate %0, %0, dim = 0 : ({UP_TO_8}, {UP_TO_8}) -> {UP_TO_16}", "%1", UP_TO_16),
    VECTOR,
)
add(
    "concat_static",
    program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.concatenate %0, %x, dim = 0 : ({UP_TO_8}, tensor<8xf32>) -> {UP_TO_16}", "%1", UP_TO_16),
    VECTOR,
)
UP_TO_11 = "tensor<?xf32, #stablehlo.bounds<11>>"
add(
    "pad",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + ZERO.replace("0.0", "7.0")
        + f"%1 = stablehlo.pad %0, %z, low = [1], high = [2], interior = [0] : ({UP_TO_8}, tensor<f32>) -> {UP_TO_11}",
        "%1",
        UP_TO_11,
    ),
    VECTOR,
)
UP_TO_17 = "tensor<?xf32, #stablehlo.bounds<17>>"
add(
    "pad_int",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + ZERO.replace("0.0", "7.0")
        + f"%1 = stablehlo.pad %0, %z, low = [1], high = [1], interior = [1] : ({UP_TO_8}, tensor<f32>) -> {UP_TO_17}",
        "%1",
        UP_TO_17,
    ),
    VECTOR,
    sizes=(1, 3, 5, 8),
)
UP_TO_32 = "tensor<?xf32, #stablehlo.bounds<32>>"
add("reshape_merge", program(MATRIX_ARGUMENTS, SIZED_MATRIX + f"%1 = stablehlo.reshape %0 : ({ROWS}) -> {UP_TO_32}", "%1", UP_TO_32), MATRIX)
add(
    "dyn_reshape",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX
        + f"""%g = stablehlo.get_dimension_size %0, dim = 0 : ({ROWS}) -> tensor<i32>
%c4 = stablehlo.constant dense<4> : tensor<i32>
%m = stablehlo.multiply %g, %c4 : tensor<i32>
%s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.dynamic_reshape %0, %s : ({ROWS}, tensor<1xi32>) -> {UP_TO_32}""",
        "%1",
        UP_TO_32,
    ),
    MATRIX,
)
# transposed then merge (minor bounded): needs compaction
add(
    "reshape_compact",
    program(
        MATRIX_ARGUMENTS,
        SIZED_MATRIX
        + f"""%t = stablehlo.transpose %0, dims = [1, 0] : ({ROWS}) -> {COLUMNS}
%1 = stablehlo.reshape %t : ({COLUMNS}) -> {UP_TO_32}""",
        "%1",
        UP_TO_32,
    ),
    MATRIX,
)
add(
    "dyn_iota",
    program(
        "%n: tensor<i32>",
        f"%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n%1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {UP_TO_8}",
        "%1",
        UP_TO_8,
    ),
    lambda n: [np.int32(n)],
)
add(
    "dyn_bcast",
    program(
        "%x: tensor<f32>, %n: tensor<i32>",
        f"%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n%1 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> {UP_TO_8}",
        "%1",
        UP_TO_8,
    ),
    F32(3),
)
add(
    "dyn_bcast_of_bounded",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"""%g = stablehlo.get_dimension_size %0, dim = 0 : ({UP_TO_8}) -> tensor<i32>
%g1 = stablehlo.reshape %g : (tensor<i32>) -> tensor<1xi32>
%c = stablehlo.constant dense<3> : tensor<1xi32>
%s = stablehlo.concatenate %c, %g1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%1 = stablehlo.dynamic_broadcast_in_dim %0, %s, dims = [1] : ({UP_TO_8}, tensor<2xi32>) -> tensor<3x?xf32, #stablehlo.bounds<?, 8>>""",
        "%1",
        "tensor<3x?xf32, #stablehlo.bounds<?, 8>>",
    ),
    VECTOR,
)
add(
    "rds",
    program(
        VECTOR_ARGUMENTS,
        f"""%o = stablehlo.constant dense<1> : tensor<1xi32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.real_dynamic_slice %x, %o, %s, %o : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> {UP_TO_8}""",
        "%1",
        UP_TO_8,
    ),
    VECTOR,
    sizes=(1, 3, 5, 8),
)
add(
    "dyn_pad",
    program(
        VECTOR_ARGUMENTS,
        f"""%o = stablehlo.constant dense<1> : tensor<1xi32>
%zz = stablehlo.constant dense<0> : tensor<1xi32>
%p = stablehlo.constant dense<9.0> : tensor<f32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = stablehlo.dynamic_pad %x, %p, %s, %o, %zz : (tensor<8xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> {UP_TO_17}""",
        "%1",
        UP_TO_17,
    ),
    VECTOR,
)
add(
    "sort",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"""%1 = "stablehlo.sort"(%0) <{{dimension = 0 : i64, is_stable = true}}> ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
 stablehlo.return %c : tensor<i1>
}}) : ({UP_TO_8}) -> {UP_TO_8}""",
        "%1",
        UP_TO_8,
    ),
    VECTOR[[3, 1, 6, 0, 7, 2, 5, 4]],
)
add(
    "while",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"""%i0 = stablehlo.constant dense<0> : tensor<i32>
%c3 = stablehlo.constant dense<3> : tensor<i32>
%c1 = stablehlo.constant dense<1> : tensor<i32>
%r:2 = stablehlo.while(%i = %i0, %v = %0) : tensor<i32>, {UP_TO_8}
cond {{
 %p = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
 stablehlo.return %p : tensor<i1>
}} do {{
 %j = stablehlo.add %i, %c1 : tensor<i32>
 %g = stablehlo.get_dimension_size %v, dim = 0 : ({UP_TO_8}) -> tensor<i32>
 %h = stablehlo.subtract %g, %c1 : tensor<i32>
 %z0 = stablehlo.maximum %h, %i0 : tensor<i32>
 %w = stablehlo.set_dimension_size %v, %z0, dim = 0 : ({UP_TO_8}, tensor<i32>) -> {UP_TO_8}
 %w2 = stablehlo.add %w, %w : {UP_TO_8}
 stablehlo.return %j, %w2 : tensor<i32>, {UP_TO_8}
}}""",
        "%r#1",
        UP_TO_8,
    ),
    VECTOR,
)
add(
    "if",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"""%c3 = stablehlo.constant dense<3> : tensor<i32>
%p = stablehlo.compare LT, %n, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%r = "stablehlo.if"(%p) ({{
 %w = stablehlo.set_dimension_size %x, %c3, dim = 0 : (tensor<8xf32>, tensor<i32>) -> {UP_TO_8}
 stablehlo.return %w : {UP_TO_8}
}}, {{
 %w = stablehlo.negate %0 : {UP_TO_8}
 stablehlo.return %w : {UP_TO_8}
}}) : (tensor<i1>) -> {UP_TO_8}""",
        "%r",
        UP_TO_8,
    ),
    VECTOR,
)
add(
    "gather_idx",
    program(
        "%x: tensor<8xi32>, %n: tensor<i32>, %t: tensor<5xf32>",
        """%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%1 = "stablehlo.gather"(%t, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<5xf32>, tensor<?xi32, #stablehlo.bounds<8>>) -> """
        + UP_TO_8,
        "%1",
        UP_TO_8,
    ),
    lambda n: [np.array([0, 4, 2, 9, 1, 3, -2, 0], np.int32), np.int32(n), np.arange(10, 15, dtype=F32)],
)
add(
    "gather_op",
    program(
        "%x: tensor<8xf32>, %n: tensor<i32>, %t: tensor<5xi32>",
        SIZED
        + """%1 = "stablehlo.gather"(%0, %t) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : ("""
        + UP_TO_8
        + """, tensor<5xi32>) -> tensor<5xf32>""",
        "%1",
        "tensor<5xf32>",
    ),
    lambda n: [VECTOR, np.int32(n), np.array([0, 4, 2, 9, 1], np.int32)],
    sizes=(1, 3, 5, 8),
)
add(
    "scatter",
    program(
        "%x: tensor<8xi32>, %n: tensor<i32>, %t: tensor<5xf32>, %u: tensor<8xf32>",
        """%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%v = stablehlo.set_dimension_size %u, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> """
        + UP_TO_8
        + """
%1 = "stablehlo.scatter"(%t, %0, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.add %a, %b : tensor<f32>
 stablehlo.return %c : tensor<f32>
}) : (tensor<5xf32>, tensor<?xi32, #stablehlo.bounds<8>>, """
        + UP_TO_8
        + """) -> tensor<5xf32>""",
        "%1",
        "tensor<5xf32>",
    ),
    lambda n: [np.array([0, 4, 2, 3, 1, 3, 2, 0], np.int32), np.int32(n), np.arange(10, 15, dtype=F32), VECTOR],
)
add(
    "dyn_slice",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"%c = stablehlo.constant dense<6> : tensor<i32>\n%1 = stablehlo.dynamic_slice %0, %c, sizes = [3] : ({UP_TO_8}, tensor<i32>) -> tensor<3xf32>",
        "%1",
        "tensor<3xf32>",
    ),
    VECTOR,
    sizes=(3, 5, 8),
)
add(
    "dus",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"%c = stablehlo.constant dense<6> : tensor<i32>\n%u = stablehlo.constant dense<[-1.0, -2.0]> : tensor<2xf32>\n%1 = stablehlo.dynamic_update_slice %0, %u, %c : ({UP_TO_8}, tensor<2xf32>, tensor<i32>) -> {UP_TO_8}",
        "%1",
        UP_TO_8,
    ),
    VECTOR,
    sizes=(2, 3, 5, 8),
)
add(
    "dus_bounded_update",
    program(
        "%x: tensor<8xf32>, %n: tensor<i32>, %y: tensor<10xf32>",
        SIZED
        + f"%c = stablehlo.constant dense<4> : tensor<i32>\n%1 = stablehlo.dynamic_update_slice %y, %0, %c : (tensor<10xf32>, {UP_TO_8}, tensor<i32>) -> tensor<10xf32>",
        "%1",
        "tensor<10xf32>",
    ),
    lambda n: [VECTOR, np.int32(n), -np.arange(10, dtype=F32)],
)


def sums_of_windows(window, stride, low, high, result_type):
    return f"""%1 = "stablehlo.reduce_window"(%0, %z) <{{window_dimensions = array<i64: {window}>, window_strides = array<i64: {stride}>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 %c = stablehlo.add %a, %b : tensor<f32>
 stablehlo.return %c : tensor<f32>
}}) : ({UP_TO_8}, tensor<f32>) -> {result_type}"""


UP_TO_3 = "tensor<?xf32, #stablehlo.bounds<3>>"
add("rw", program(VECTOR_ARGUMENTS, SIZED + ZERO + sums_of_windows(3, 2, 0, 0, UP_TO_3), "%1", UP_TO_3), VECTOR, sizes=(3, 5, 8))
add("rw_pad", program(VECTOR_ARGUMENTS, SIZED + ZERO + sums_of_windows(3, 1, 1, 1, UP_TO_8), "%1", UP_TO_8), VECTOR)
IMAGE = "tensor<1x?x1xf32, #stablehlo.bounds<?, 8, ?>>"
add(
    "conv",
    program(
        "%x: tensor<1x8x1xf32>, %n: tensor<i32>, %k: tensor<3x1x2xf32>",
        f"""%0 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<1x8x1xf32>, tensor<i32>) -> {IMAGE}
%1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [1], pad = [[1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({IMAGE}, tensor<3x1x2xf32>) -> tensor<1x?x2xf32, #stablehlo.bounds<?, 8, ?>>""",
        "%1",
        "tensor<1x?x2xf32, #stablehlo.bounds<?, 8, ?>>",
    ),
    lambda n: [VECTOR.reshape(1, 8, 1), np.int32(n), np.arange(6, dtype=F32).reshape(3, 1, 2)],
    sizes=(1, 3, 5, 8),
)
add(
    "slice",
    program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.slice %0 [0:3] : ({UP_TO_8}) -> tensor<3xf32>", "%1", "tensor<3xf32>"),
    VECTOR,
    sizes=(3, 5, 8),
)
add("bcast", program(VECTOR_ARGUMENTS, SIZED + f"%1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({UP_TO_8}) -> {ROWS}", "%1", ROWS), VECTOR)
add(
    "argmax",
    program(
        VECTOR_ARGUMENTS,
        SIZED
        + f"""%i = stablehlo.get_dimension_size %0, dim = 0 : ({UP_TO_8}) -> tensor<i32>
%s = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
%io = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, #stablehlo.bounds<8>>
%m = stablehlo.constant dense<0xFF800000> : tensor<f32>
%zi = stablehlo.constant dense<0> : tensor<i32>
%r:2 = stablehlo.reduce(%0 init: %m), (%io init: %zi) across dimensions = [0] : ({UP_TO_8}, tensor<?xi32, #stablehlo.bounds<8>>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
 reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {{
 %p = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
 %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
 %w = stablehlo.select %p, %c, %d : tensor<i1>, tensor<i32>
 stablehlo.return %v, %w : tensor<f32>, tensor<i32>
 }}""",
        "%r#1",
        "tensor<i32>",
    ),
    VECTOR[[3, 1, 6, 0, 7, 2, 5, 4]],
    sizes=(1, 3, 5, 8),
)
add(
    "dyn_conv",
    program(
        "%x: tensor<1x8x1xf32>, %n: tensor<i32>, %k: tensor<3x1x2xf32>",
        """%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1x1xi32>
%p = stablehlo.concatenate %s, %s, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
%1 = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x1xf32>, tensor<3x1x2xf32>, tensor<1x2xi32>) -> tensor<1x?x2xf32, #stablehlo.bounds<?, 22, ?>>""",
        "%1",
        "tensor<1x?x2xf32, #stablehlo.bounds<?, 22, ?>>",
    ),
    lambda n: [VECTOR.reshape(1, 8, 1), np.int32(n), np.arange(6, dtype=F32).reshape(3, 1, 2)],
)
add(
    "dyn_gather",
    program(
        "%x: tensor<8xf32>, %n: tensor<i32>, %t: tensor<2x1xi32>",
        """%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
%1 = "stablehlo.dynamic_gather"(%x, %t, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<8xf32>, tensor<2x1xi32>, tensor<1xi32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 8>>""",
        "%1",
        "tensor<2x?xf32, #stablehlo.bounds<?, 8>>",
    ),
    lambda n: [VECTOR, np.int32(n), np.array([[1], [6]], np.int32)],
)
add(
    "call",
    f"""func.func private @f(%v: {UP_TO_8}) -> {UP_TO_8} {{
 %1 = stablehlo.exponential %v : {UP_TO_8}
 return %1 : {UP_TO_8}
}}
"""
    + program(VECTOR_ARGUMENTS, SIZED + f"%1 = call @f(%0) : ({UP_TO_8}) -> {UP_TO_8}", "%1", UP_TO_8),
    VECTOR,
)
add(
    "arg",
    program(
        f"%x: {UP_TO_8}, %n: tensor<i32>",
        ZERO
        + f"""%1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : ({UP_TO_8}, tensor<f32>) -> tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>""",
        "%2",
        "tensor<4xf32>",
    ),
    lambda n: [VECTOR[:n], np.int32(n)],
    sizes=(0, 5, 8),
)


def conv_of(x, k, low, high):
    padded = np.pad(x[0, :, 0], (low, high))
    count = max(0, len(padded) - 2)
    return np.array([[padded[i : i + 3] @ k[:, 0] for i in range(count)]], F32).reshape(1, count, 2)


def interleaved(x, low, high):
    out = np.full(low + high + max(0, 2 * len(x) - 1), 7, F32)
    out[low : len(out) - high : 2] = x
    return out


def windows(x, window, stride, low, high):
    padded = np.pad(x, (low, high))
    return np.array([padded[i : i + window].sum() for i in range(0, len(padded) - window + 1, stride)], F32)


def shrunk(x, n):
    for _ in range(3):
        n = max(n - 1, 0)
        x = x * 2
    return x[:n]


def added(x, indices, updates):
    out = x.copy()
    np.add.at(out, indices, updates)
    return out


def updated(x, update, at):
    out = x.copy()
    at = min(at, len(x) - len(update))
    out[at : at + len(update)] = update
    return out


EXPECTED = {
    "set": lambda x, n: x[:n],
    "set2": lambda x, n: x[:n],
    "neg": lambda x, n: -x[:n] * x[:n],
    "get": lambda x, n: np.int32(n),
    "pad_to_static": lambda x, n: np.where(np.arange(8) < n, x, F32(0)),
    "pad_to_static_size": lambda x, n: np.int32(n),
    "slice_to_dynamic": lambda x, n: -x[:n],
    "reduce_add": lambda x, n: x[:n].sum(),
    "reduce_multiply": lambda x, n: x[:n].prod(),
    "reduce_maximum": lambda x, n: x[:n].max(initial=0),
    "reduce_minimum": lambda x, n: x[:n].min(initial=0),
    "reduce_minor": lambda x, n: x[:n].sum(axis=1),
    "reduce_major": lambda x, n: x[:n].sum(axis=0),
    "transpose": lambda x, n: x[:n].T,
    "dot_contract": lambda x, n: x[:n].T @ x[:n],
    "dot_free": lambda x, n: x[:n] @ x[:n].T,
    "reverse": lambda x, n: x[:n][::-1],
    "concat": lambda x, n: np.concatenate([x[:n], x[:n]]),
    "concat_static": lambda x, n: np.concatenate([x[:n], x]),
    "pad": lambda x, n: np.pad(x[:n], (1, 2), constant_values=7),
    "pad_int": lambda x, n: interleaved(x[:n], 1, 1),
    "reshape_merge": lambda x, n: x[:n].ravel(),
    "dyn_reshape": lambda x, n: x[:n].ravel(),
    "reshape_compact": lambda x, n: x[:n].T.ravel(),
    "dyn_iota": lambda n: np.arange(n, dtype=F32),
    "dyn_bcast": lambda x, n: np.full(n, x),
    "dyn_bcast_of_bounded": lambda x, n: np.stack([x[:n]] * 3),
    "rds": lambda x, n: x[1:n],
    "dyn_pad": lambda x, n: np.pad(x, (n, 1), constant_values=9),
    "fft": lambda x, n: np.fft.rfft(x[:n]).real,
    "cholesky": lambda x, n: np.tril(np.linalg.cholesky(x[:n])) if n else x[:0],
    "triangular_solve": lambda x, n: np.linalg.solve(np.tril(x[:n]), x[:n]),
    "potrf": lambda x, n: np.linalg.cholesky(x[:n]) if n else x[:0],
    "sort": lambda x, n: np.sort(x[:n])[::-1],
    "while": lambda x, n: shrunk(x, n),
    "if": lambda x, n: x[:3] if n < 3 else -x[:n],
    "gather_idx": lambda i, n, x: x[np.clip(i[:n], 0, 4)],
    "gather_op": lambda x, n, i: x[np.clip(i, 0, n - 1)],
    "scatter": lambda i, n, x, u: added(x, i[:n], u[:n]),
    "dyn_slice": lambda x, n: x[min(6, n - 3) : min(6, n - 3) + 3],
    "dus": lambda x, n: updated(x[:n], np.array([-1, -2], F32), 6),
    "dus_bounded_update": lambda x, n, y: updated(y, x[:n], 4),
    "rw": lambda x, n: windows(x[:n], 3, 2, 0, 0),
    "rw_pad": lambda x, n: windows(x[:n], 3, 1, 1, 1),
    "conv": lambda x, n, k: conv_of(x[:, :n], k, 1, 1),
    "slice": lambda x, n: x[:3],
    "bcast": lambda x, n: np.stack([x[:n]] * 4, axis=1),
    "argmax": lambda x, n: np.int32(x[:n].argmax()),
    "dyn_conv": lambda x, n, k: conv_of(x, k, n, n),
    "dyn_gather": lambda x, n, i: np.stack([x[min(at, 8 - n) : min(at, 8 - n) + n] for at in i[:, 0]]),
    "call": lambda x, n: np.exp(x[:n]),
    "arg": lambda x, n: np.full(4, x.sum()),
}


def value(array):
    array = np.asarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tolist()}


def run(server, text, arguments, devices):
    body = {"program": {"text": text}, "arguments": [value(each) for each in arguments]}
    if devices > 1:
        body["mesh"] = {"axis_names": ["x"], "devices": list(range(devices))}
        body["in_shardings"] = [{"spec": [["x"]] + [[]] * (np.ndim(each) - 1) if np.ndim(each) else []} for each in arguments]
    answer = ok(server.ask("POST", "/v1/run", body))["results"]
    assert len(answer) == 1, f"one result is the program's: {answer}"
    return np.array(answer[0]["data"], float).reshape(answer[0]["shape"])


def main():
    failed = 0
    assert {name.split("[")[0] for name, _, _ in CASES} == set(EXPECTED)
    with Meshd(sys.argv[1]) as server:
        for name, text, arguments in CASES:
            wanted = np.asarray(EXPECTED[name.split("[")[0]](*arguments))
            for devices in (1, 2, 3):
                try:
                    got = run(server, text, arguments, devices)
                    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
                    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
                except AssertionError as error:
                    failed += 1
                    print(f"FAILED {name} on {devices} devices: {error}")
    print(f"{len(CASES)} programs, {failed} failures")
    return 1 if failed else 0


sys.exit(main())
