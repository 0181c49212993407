"""The conformance cases of floats that are no functions of single numbers: sums, products, windows, transforms, convolutions.

The exact values are XLA's, from the same text with all floats of 64 bits: 2^29 times as exact. XLA's answers are the stored ones. Errors
are in units in the last place of the largest number of a result, so that a sum that happens to cancel says nothing. Cases of 64-bit
floats have no such text: `sums.py` has rows for them.
"""
import collections
import json
import pathlib
import re
import sys

import ml_dtypes
import numpy as np
from compared import Table, decoded, meshd
from functions import FUNCTIONS, PART, limits_of

ROOT = pathlib.Path(__file__).resolve().parent.parent / "conformance"
sys.path.insert(0, str(ROOT / "make"))
import run_text  # noqa: E402

KNOWN = {
}
# What another type has other answers of, random numbers, functions that functions.py has, series whose length depends on the type (the
# incomplete gamma and beta functions), factorisations (solves.py).
LEFT_OUT = set(FUNCTIONS) | {
    "bitcast_convert_type", "convert_element_type", "nextafter", "reduce_precision", "regularized_incomplete_beta", "igamma", "igammac", "random_gamma",
    "random_categorical", "random_randint", "random_split", "random_uniform", "rng_bit_generator", "lu", "qr", "eig", "eigh", "svd",
    "cholesky", "triangular_solve", "tridiagonal_solve", "custom_linear_solve", "approx_top_k", "device_put"}
NARROW = ("float16", "bfloat16", "float32", "complex64")
INFINITIES = {"FF800000": "FFF0000000000000", "7F800000": "7FF0000000000000", "FC00": "FFF0000000000000",
              "7C00": "7FF0000000000000", "FF80": "FFF0000000000000", "7F80": "7FF0000000000000", "7FC00000": "7FF8000000000000"}


def widened(text):
    """The text with floats of 64 bits; None where a constant is none that this knows."""
    text = re.sub(r"0x([0-9A-F]+)(> : tensor<[^>]*f(?:16|32)>)", lambda m: f"0x{INFINITIES.get(m[1], '?')}{m[2]}", text)
    left = re.search(r"0x(\?|[0-9A-F]{1,8}\b)", text)
    return None if left else re.sub(r"\b(bf16|f16|f32)\b|(?<=x)(bf16|f16|f32)\b", "f64", text)


def wide(x):
    kind = x.dtype.name
    return x.astype(np.complex128 if kind == "complex64" else np.float64) if kind in NARROW else x


def check(url, word):
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for path in sorted((ROOT / "ops").glob("*/*.json")):
        op = path.parent.name
        case = json.loads(path.read_text())
        names = [r["value"]["dtype"] for r in case["results"]]
        if op in LEFT_OUT or word not in op or not any(n in NARROW for n in names) or case.get("callbacks"):
            continue
        text = path.with_suffix(".mlir").read_text()
        wide_text = widened(text)
        if wide_text is None or "custom_call" in text:
            continue
        arguments = [decoded(v) for v in case["arguments"]]
        exact = run_text.run(wide_text, [wide(x) for x in arguments])
        for name, result, stored, wanted in zip(names, meshd(url, text, arguments), case["results"], exact):
            if name not in NARROW or not wanted.size:
                continue
            limits = limits_of(np.dtype(getattr(ml_dtypes, name, None) or name))
            finite = np.isfinite(wanted) & (np.abs(wanted) < float(limits.max) / 2)
            if not finite.any():
                continue
            unit = float(limits.eps) * max(np.abs(wanted[finite]).max(), float(limits.tiny))
            for errors, got in ((ours, result), (theirs, decoded(stored["value"]))):
                errors[op, name].extend(np.abs(wide(got)[finite] - wanted[finite]) / unit)
    table = Table("units in the last place of the largest number of a result", KNOWN)
    for op, name in sorted(ours):
        table.add(op, name, ours[op, name], theirs[op, name])
    return table.finish()
