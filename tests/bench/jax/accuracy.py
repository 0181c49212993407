#!/usr/bin/env python3
"""How far meshd's and XLA's functions are from the exact value: accuracy.py URL [WORD].

For each function and element type the largest and mean error in units in the last place, against mpmath with 200 bits, over
1,500 arguments where the function has its range and its difficult places. Rows where XLA is closer end with "XLA". Needs jax and
mpmath; a function that JAX writes as several ops is the sum of their errors on both sides.
"""
import base64
import json
import sys
import urllib.request

import jax
import mpmath as mp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
mp.mp.prec = 200
COUNT = 1500
CLOSER = 1.05  # of two errors that are this near to one another neither is the larger
RANDOM = np.random.RandomState(5)
PART = {"complex64": np.float32, "complex128": np.float64}


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


def meshd(url, text, args):
    body = {"program": {"format": "stablehlo", "text": text}, "results": {"encoding": "base64"},
            "arguments": [{"dtype": str(x.dtype), "shape": list(x.shape), "base64": base64.b64encode(x.tobytes()).decode()} for x in args]}
    request = urllib.request.Request(url + "/v1/run", json.dumps(body).encode(), {"Content-Type": "application/json"})
    result = json.load(urllib.request.urlopen(request))["results"][0]
    return np.frombuffer(base64.b64decode(result["base64"]), result["dtype"]).reshape(result["shape"])


def exact(x):
    return mp.mpc(float(x.real), float(x.imag)) if np.iscomplexobj(x) else mp.mpf(float(x))


def errors(got, wanted, dtype):
    """Largest and mean; of complex numbers relative to their magnitude. Results out of range are left out."""
    limits = np.finfo(PART.get(dtype.name, dtype))
    eps, tiny, largest = (mp.mpf(float(x)) for x in (limits.eps, limits.tiny, limits.max))
    out = []
    for g, w in zip(got, wanted):
        if not np.isfinite(g) or abs(w) > largest / 2:
            continue
        size = max(abs(w), tiny)
        unit = eps * (size if dtype.name in PART else mp.mpf(2) ** mp.floor(mp.log(size, 2)))
        out.append(float(abs(exact(g) - w) / unit))
    return max(out), sum(out) / len(out)


def sample(kind, dtype):
    x = arguments(kind)
    return (x + 1j * RANDOM.permutation(arguments(kind)) if dtype.name in PART else x).astype(dtype)


def row(url, name, dtype):
    function, truth, kinds, _ = FUNCTIONS[name]
    args = [sample(kind, dtype) for kind in kinds]
    jitted = jax.jit(function)
    theirs, ours = np.asarray(jitted(*args)), meshd(url, jitted.lower(*args).as_text(), args)
    wanted = [truth(*map(exact, values)) for values in zip(*args)]
    (our_max, our_mean), (their_max, their_mean) = errors(ours, wanted, dtype), errors(theirs, wanted, dtype)
    closer = "XLA" if our_max > CLOSER * their_max or our_mean > CLOSER * their_mean else ""
    print(f"{name:11} {dtype.name:11} {our_max:9.3g} {our_mean:8.3g} {their_max:9.3g} {their_mean:8.3g}  {closer}", flush=True)
    return closer == ""


def main():
    url, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{'function':11} {'type':11} {'meshd max':>9} {'mean':>8} {'XLA max':>9} {'mean':>8}")
    good = [row(url, name, np.dtype(dtype)) for name, spec in FUNCTIONS.items() if word in name
            for dtype in ("float32", "float64", "complex64", "complex128") if spec[3] or dtype not in PART]
    print(f"at most XLA's in {sum(good)} of {len(good)} rows")


main()
