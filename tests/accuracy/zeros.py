"""Signed zeros of sums, products and their reductions: the same as XLA's, bit by bit, for operands of zeros of both signs; and complex functions on their
branch cuts, where a part is a zero of either sign: on XLA's side."""
import jax
import jax.numpy as jnp
import numpy as np
from compared import meshd

TYPES = ["float32", "float64"]
NEGATIVE = -0.0


def window(reducer, start):
    return lambda x: jax.lax.reduce_window(x, np.asarray(start, x.dtype), reducer, (1, 2), (1, 1), "SAME")


PROGRAMS = {
    "sum": lambda x: x.sum(), "sum of rows": lambda x: x.sum(1), "sum of columns": lambda x: x.sum(0), "product": lambda x: x.prod(1),
    "product of columns": lambda x: x.prod(0),
    "reduce from -0": lambda x: jax.lax.reduce(x, np.asarray(NEGATIVE, x.dtype), jax.lax.add, (1,)),
    "reduce to one from -0": lambda x: jax.lax.reduce(x, np.asarray(NEGATIVE, x.dtype), jax.lax.add, (0, 1)),
    "cumsum": lambda x: jnp.cumsum(x, 1), "cumprod": lambda x: jnp.cumprod(x, 1),
    "window from 0": window(jax.lax.add, 0), "window from -0": window(jax.lax.add, NEGATIVE), "window product": window(jax.lax.mul, 1),
    "add": lambda x: x + x[::-1], "subtract": lambda x: x - x[::-1], "multiply": lambda x: x * x[::-1], "mean": lambda x: x.mean(1),
    "dot_general": lambda x: x @ x.T, "dot_general of vectors": lambda x: x[0] @ x[1], "max": lambda x: x.max(1), "min": lambda x: x.min(1),
    "scatter_add": lambda x: x.at[jnp.array([0, 0, 1])].add(x[:3]), "segment": lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1]), 2),
    "convolution": lambda x: jax.lax.conv_general_dilated(x[None, None], x[None, None, :2, :2], (1, 1), "VALID"),
    "sum of a product": lambda x: (x * x[::-1]).sum(1), "dot of negated": lambda x: jnp.dot(-x, jnp.abs(x).T),
}
# Where the signs differ, with the reason.
KNOWN = {
}


CUT = {"sqrt": jnp.sqrt, "asin": jnp.arcsin, "acos": jnp.arccos, "acosh": jnp.arccosh, "asinh": jnp.arcsinh, "atan": jnp.arctan, "atanh": jnp.arctanh,
       "log": jnp.log, "log1p": jnp.log1p, "power": lambda z: z ** 0.3}


def on_cuts(dtype):
    """Numbers of both axes, with zeros of both signs in the other part."""
    lengths = np.array([-4.0, -1.5, -0.5, 0.5, 1.5, 4.0])
    out = np.zeros((2, 2, lengths.size), dtype)
    for sign, zero in enumerate((0.0, NEGATIVE)):
        out[0, sign].real, out[0, sign].imag = lengths, zero
        out[1, sign].real, out[1, sign].imag = zero, lengths
    return out


def check_cuts(url, word):
    differ, count = [], 0
    for name, function in CUT.items():
        for dtype in ["complex64", "complex128"] if word in name else []:
            z = on_cuts(dtype)
            jitted = jax.jit(function)
            ours, theirs = meshd(url, jitted.lower(z).as_text(), [z])[0], np.asarray(jitted(z))
            count += 1
            if not np.allclose(ours, theirs, rtol=1e-5, atol=1e-5):
                differ.append(f"{name} {dtype}: meshd {ours.tolist()}, XLA {theirs.tolist()}")
    print(f"{count} complex functions on their branch cuts; values on the other side than XLA's: {len(differ)}", *differ, sep="\n", flush=True)
    return not differ


def check(url, word):
    patterns = {"negative": np.full((4, 4), NEGATIVE), "mixed": np.where(np.random.RandomState(3).rand(4, 4) < 0.5, NEGATIVE, 0.0),
                "one row negative": np.where(np.arange(4)[:, None] == 1, NEGATIVE, np.zeros((4, 4)))}
    differ, count = [], 0
    for name, function in PROGRAMS.items():
        for dtype in TYPES if word in name else []:
            for pattern, values in patterns.items():
                x = values.astype(dtype)
                jitted = jax.jit(function)
                ours, theirs = meshd(url, jitted.lower(x).as_text(), [x])[0], np.asarray(jitted(x))
                count += 1
                if not np.array_equal(np.signbit(ours), np.signbit(theirs)) and name not in KNOWN:
                    differ.append(f"{name} {dtype} {pattern}: meshd {ours.tolist()}, XLA {theirs.tolist()}")
    print(f"{count} programs on zeros of both signs; signs that differ from XLA's: {len(differ)}", *differ, sep="\n", flush=True)
    return check_cuts(url, word) and not differ
