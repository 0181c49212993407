"""Functions of one number or two against mpmath with 200 bits, in units in the last place.

Arguments are those of the conformance cases of the op and type, and 1,500 where the function has its range and its difficult places.
A function that JAX writes as several ops is the sum of their errors on both sides.
"""
import json
import pathlib

import jax
import ml_dtypes
import mpmath as mp
import numpy as np
from compared import Table, decoded, meshd
from jax import lax

CONFORMANCE = pathlib.Path(__file__).resolve().parent.parent / "conformance" / "ops"
mp.mp.prec = 200
COUNT = 1500
RANDOM = np.random.RandomState(5)
PART = {"complex64": np.float32, "complex128": np.float64}
TYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
# Where XLA is closer, with the reason.
KNOWN = {
    "bessel_i0e": "JAX writes it as a chain of products and sums, which XLA's compiler rounds once for two; here each op has its own rounding",
}


def spread(low, high, count):
    """Magnitudes from e^low to e^high."""
    return np.exp(RANDOM.uniform(low, high, count))


def arguments(kind):
    third, half, signs = COUNT // 3, COUNT // 2, RANDOM.choice([-1, 1], COUNT)
    return {
        "any": lambda: np.concatenate([RANDOM.randn(third) * 3, spread(-20, 20, third) * signs[:third], RANDOM.uniform(-1, 1, third)]),
        "positive": lambda: np.concatenate([spread(-20, 20, half), RANDOM.uniform(0, 3, half)]),
        "gamma": lambda: np.concatenate([RANDOM.uniform(0.01, 30, half), spread(-5, 6, half)]),
        "unit": lambda: np.concatenate([RANDOM.uniform(-1, 1, half), signs[:half] * (1 - spread(-15, -1, half))]),
        "small": lambda: np.concatenate([RANDOM.randn(half) * 5, RANDOM.uniform(-1, 1, half)]),
        "exponent": lambda: np.concatenate([RANDOM.uniform(-80, 80, half), RANDOM.randn(half)]),
        "above one": lambda: 1 + spread(-15, 10, COUNT),
        "above minus one": lambda: np.concatenate([RANDOM.uniform(-0.99, 2, half), spread(-15, 10, half)]),
        "base": lambda: spread(-8, 8, COUNT),
        "power": lambda: RANDOM.randn(COUNT) * 3,
    }[kind]()


def log1p(x):
    return mp.log(1 + x) if isinstance(x, mp.mpc) else mp.log1p(x)


# name: the function, the exact one, where its arguments are, and whether it takes complex numbers
FUNCTIONS = {
    "exp": (lax.exp, mp.exp, ["exponent"], True), "expm1": (lax.expm1, mp.expm1, ["exponent"], True),
    "log": (lax.log, mp.log, ["positive"], True), "log1p": (lax.log1p, log1p, ["above minus one"], True),
    "sin": (lax.sin, mp.sin, ["any"], True), "cos": (lax.cos, mp.cos, ["any"], True), "tan": (lax.tan, mp.tan, ["any"], True),
    "sinh": (lax.sinh, mp.sinh, ["exponent"], True), "cosh": (lax.cosh, mp.cosh, ["exponent"], True),
    "tanh": (lax.tanh, mp.tanh, ["small"], True), "asin": (lax.asin, mp.asin, ["unit"], True),
    "acos": (lax.acos, mp.acos, ["unit"], True), "atan": (lax.atan, mp.atan, ["any"], True),
    "asinh": (lax.asinh, mp.asinh, ["any"], True), "acosh": (lax.acosh, mp.acosh, ["above one"], True),
    "atanh": (lax.atanh, mp.atanh, ["unit"], True), "sqrt": (lax.sqrt, mp.sqrt, ["positive"], True),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mp.sqrt(x), ["positive"], True),
    "cbrt": (lax.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), ["any"], False),
    "logistic": (lax.logistic, lambda x: 1 / (1 + mp.exp(-x)), ["exponent"], True),
    "erf": (lax.erf, mp.erf, ["small"], False), "erfc": (lax.erfc, mp.erfc, ["small"], False),
    "erf_inv": (lax.erf_inv, mp.erfinv, ["unit"], False),
    "lgamma": (lax.lgamma, lambda x: mp.log(abs(mp.gamma(x))), ["gamma"], False), "digamma": (lax.digamma, mp.digamma, ["gamma"], False),
    "bessel_i0e": (lax.bessel_i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), ["small"], False),
    "bessel_i1e": (lax.bessel_i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), ["small"], False),
    "pow": (lax.pow, mp.power, ["base", "power"], True), "atan2": (lax.atan2, mp.atan2, ["any", "any"], False),
    "mul": (lax.mul, lambda a, b: a * b, ["small", "small"], True), "div": (lax.div, lambda a, b: a / b, ["small", "small"], True),
}


def exact(x):
    return mp.mpc(float(x.real), float(x.imag)) if np.iscomplexobj(x) else mp.mpf(float(x))


def limits_of(dtype):
    part = np.dtype(PART.get(dtype.name, dtype))
    return ml_dtypes.finfo(part) if part.name in ("bfloat16", "float16") else np.finfo(part)


def errors(got, wanted, dtype):
    """Value by value; of complex numbers relative to their magnitude. Results out of range are left out."""
    limits = limits_of(dtype)
    eps, tiny, largest = (mp.mpf(float(x)) for x in (limits.eps, limits.tiny, limits.max))
    out = []
    for g, w in zip(got, wanted):
        if not mp.isfinite(w) or abs(w) > largest / 2:
            continue
        size = max(abs(w), tiny)
        unit = eps * (size if dtype.name in PART else mp.mpf(2) ** mp.floor(mp.log(size, 2)))
        # A result that is not finite where the exact one is in range is as wrong as can be.
        out.append(float(abs(exact(g) - w) / unit) if np.isfinite(g) else 1e30)
    return out


def sample(kind, dtype):
    x = arguments(kind)
    return (x + 1j * RANDOM.permutation(arguments(kind)) if dtype.name in PART else x).astype(dtype)


def conformance_arguments(name, dtype, count):
    """Arguments of all cases of the op that have `count` of this type, one behind the other."""
    columns = [[] for _ in range(count)]
    for path in sorted((CONFORMANCE / name).glob("*.json")):
        values = json.loads(path.read_text())["arguments"]
        if len(values) != count or any(v["dtype"] != dtype.name for v in values):
            continue
        for column, value in zip(columns, np.broadcast_arrays(*map(decoded, values))):
            column.append(value.reshape(-1))
    return [np.concatenate(column) if column else np.zeros(0, dtype) for column in columns]


def value_of(truth, args):
    try:
        return truth(*args)
    except (ValueError, ZeroDivisionError, OverflowError, mp.libmp.NoConvergence):
        return mp.nan  # no finite number, or outside of the domain


def row(url, table, name, dtype):
    function, truth, kinds, _ = FUNCTIONS[name]
    args = [np.concatenate(pair) for pair in zip([sample(kind, dtype) for kind in kinds], conformance_arguments(name, dtype, len(kinds)))]
    jitted = jax.jit(function)
    theirs, ours = np.asarray(jitted(*args)), meshd(url, jitted.lower(*args).as_text(), args)[0]
    finite = np.logical_and.reduce([np.isfinite(x.astype(complex)) for x in args])
    wanted = [value_of(truth, tuple(map(exact, values))) if ok else mp.nan for ok, *values in zip(finite, *args)]
    real = dtype.name not in PART
    wanted = [mp.nan if real and isinstance(w, mp.mpc) else w for w in wanted]
    table.add(name, dtype.name, errors(ours, wanted, dtype), errors(theirs, wanted, dtype))


def check(url, word):
    table = Table("units in the last place", KNOWN)
    for name, spec in FUNCTIONS.items():
        if word in name:
            for dtype in TYPES:
                if spec[3] or dtype not in PART:
                    row(url, table, name, np.dtype(getattr(ml_dtypes, dtype, None) or dtype))
    return table.finish()
