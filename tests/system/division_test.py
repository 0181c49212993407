#!/usr/bin/env python3
"""Divisions are IEEE 754's, bit by bit, also where the divisor is a broadcast: division_test.py BINARY.

A product with the reciprocal would be cheaper and is wrong: its last bit, and all of it where the divisor is denormal (whose reciprocal is
infinite) or huge (whose reciprocal is denormal).
"""
import base64
import sys

import numpy as np
from server import Meshd

ROWS, COLUMNS = 24, 37  # more than any vector is long, and no multiple of it
TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "complex<f32>", "complex128": "complex<f64>"}


def to_bfloat16(values):
    """float32 rounded to the upper halves of its words, ties to even; NaNs stay quiet ones."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def from_bfloat16(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)


def specials(dtype):
    info = np.finfo(dtype)
    one = [0.0, -0.0, np.inf, -np.inf, np.nan, info.smallest_subnormal, -info.smallest_subnormal, info.smallest_subnormal * dtype(3), info.tiny, -info.tiny,
           info.tiny * dtype(0.5), info.max, -info.max, dtype(1), dtype(3), dtype(-7), dtype(10), dtype(0.1)]
    return np.array(one, dtype)


def numbers(dtype, shape, seed):
    """Special values first, then random ones of all magnitudes."""
    random = np.random.default_rng(seed)
    count = int(np.prod(shape))
    width = np.finfo(dtype).maxexp - 2
    out = (random.standard_normal(count) * 2.0 ** random.uniform(-width / 2, width / 2, count)).astype(dtype)
    known = specials(dtype)
    at = random.permutation(count)[: min(len(known), count)]
    out[at] = known[: len(at)]
    return out.reshape(shape)


def operands(name, shape, seed):
    if name.startswith("complex"):
        part = np.float32 if name == "complex64" else np.float64
        out = np.empty(shape, name)
        out.real, out.imag = numbers(part, shape, seed), numbers(part, shape, seed + 100)
        return out
    if name == "bfloat16":
        return to_bfloat16(numbers(np.float32, shape, seed))
    return numbers(np.dtype(name).type, shape, seed)


def value(name, array):
    return {"dtype": name, "shape": list(array.shape), "base64": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def read(name, result):
    kind = np.uint16 if name == "bfloat16" else np.dtype(name)
    return np.frombuffer(base64.b64decode(result["base64"]), kind).reshape(result["shape"])


def quotient(name, x, y):
    with np.errstate(all="ignore"):
        if name == "bfloat16":
            return to_bfloat16(from_bfloat16(x) / from_bfloat16(y))
        return x / y


def same_bits(name, got, expected):
    """Any NaN is as good as any other."""
    if name.startswith("complex"):
        part = np.float32 if name == "complex64" else np.float64
        return same_bits(part.__name__, np.ascontiguousarray(got).view(part), np.ascontiguousarray(expected).view(part))
    as_float = from_bfloat16 if name == "bfloat16" else (lambda a: a)
    nan = np.isnan(as_float(got)) & np.isnan(as_float(expected))
    word = {2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    wrong = (np.ascontiguousarray(got).view(word) != np.ascontiguousarray(expected).view(word)) & ~nan
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        print(f"  {int(wrong.sum())} of {wrong.size} differ, first at {at}: expected {expected[at]!r}, got {got[at]!r}")
    return not wrong.any()


def run(server, text, arguments, **more):
    body = {"program": {"text": text}, "arguments": arguments, "results": {"encoding": "base64"}, **more}
    status, _, answer = server.ask("POST", "/v1/run", body)
    assert status == 200, answer
    return answer["results"]


def divides_by(server, name, y_dims, dims):
    """x / broadcast(y), against the division of whole tensors and, where numpy has the dtype, against numpy."""
    t = TYPES[name]
    large, small = f"tensor<{ROWS}x{COLUMNS}x{t}>", "tensor<" + "".join(f"{d}x" for d in y_dims) + t + ">"
    spread = f"%s = stablehlo.broadcast_in_dim %y, dims = {dims} : ({small}) -> {large}\n"
    by_broadcast = f"func.func @main(%x: {large}, %y: {small}) -> {large} {{\n{spread} %q = stablehlo.divide %x, %s : {large}\n return %q : {large}\n}}"
    fused = (f"func.func @main(%x: {large}, %y: {small}) -> {large} {{\n %n = stablehlo.negate %x : {large}\n {spread} %q = stablehlo.divide %n, %s : {large}\n"
             f" %m = stablehlo.negate %q : {large}\n return %m : {large}\n}}")
    whole = f"func.func @main(%x: {large}, %s: {large}) -> {large} {{ %q = stablehlo.divide %x, %s : {large} return %q : {large} }}"
    good = True
    for seed in (1, 2, 3):
        x, y = operands(name, (ROWS, COLUMNS), seed), operands(name, tuple(y_dims), seed + 7)
        index = [None] * 2
        for i, d in enumerate(dims):
            index[d] = y_dims[i]
        s = np.broadcast_to(y.reshape([n or 1 for n in index]), (ROWS, COLUMNS))
        expected = read(name, run(server, whole, [value(name, x), value(name, s)])[0])
        if not name.startswith("complex"):
            good = same_bits(name, expected, quotient(name, x, s)) and good
        given = [value(name, x), value(name, y)]
        good = same_bits(name, read(name, run(server, by_broadcast, given)[0]), expected) and good
        if not name.startswith("complex"):  # -(-x / y) has other signs of zeros there: they are sums
            good = same_bits(name, read(name, run(server, fused, given)[0]), expected) and good
        mesh = {"axis_names": ["a"], "devices": [0, 1, 2, 3]}
        cut = run(server, by_broadcast, given, mesh=mesh, in_shardings=[{"spec": [["a"], []]}, None])
        good = same_bits(name, read(name, cut[0]), expected) and good
    return good


def divides_by_constants(server, name):
    """Constant divisors, scalar and spread: powers of two are no exception that shows."""
    t, word = TYPES[name], {"float16": np.uint16, "float32": np.uint32, "float64": np.uint64}[name]
    large = f"tensor<{ROWS}x{COLUMNS}x{t}>"
    x, good = operands(name, (ROWS, COLUMNS), 5), True
    powers = np.array([2.0, 0.5, -4.0], name)
    for y in np.concatenate([specials(np.dtype(name).type), powers]):
        bits = f"0x{int(y.view(word)):0{2 * y.itemsize}X}"
        text = f"func.func @main(%x: {large}) -> {large} {{\n %s = stablehlo.constant dense<{bits}> : {large}\n %q = stablehlo.divide %x, %s : {large}\n return %q : {large}\n}}"
        if not same_bits(name, read(name, run(server, text, [value(name, x)])[0]), quotient(name, x, y)):
            print(f"  by the constant {y!r}")
            good = False
    return good


def main():
    failed = []
    with Meshd(sys.argv[1], "--devices", "8") as server:
        for name in TYPES:
            for y_dims, dims in (([ROWS], [0]), ([COLUMNS], [1]), ([], []), ([ROWS, 1], [0, 1]), ([1], [1])):
                if not divides_by(server, name, y_dims, dims):
                    failed.append(f"{name} by {y_dims}")
        for name in ("float16", "float32", "float64"):
            if not divides_by_constants(server, name):
                failed.append(f"{name} by constants")
    for line in failed:
        print("FAILED", line)
    return 1 if failed else 0


sys.exit(main())
