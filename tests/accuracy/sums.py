"""Sums, products, windows, transforms and solutions of random numbers, larger than those of the conformance cases, against long double.

In units in the last place of the largest number of a result.
"""
import jax
import jax.numpy as jnp
import numpy as np
from compared import Table, meshd
from functions import PART, limits_of

LONG_CHAINS = "OpenBLAS adds along one chain, in parts of 96 terms; XLA's library splits such sums over its threads: on one thread ours are nearer"
VECTORS = "OpenBLAS adds along one chain, and is a fifth slower in shorter parts; XLA's library adds blocks"
HALVES = "a real line is transformed as a complex one of half the length, and separated by one more pass; XLA's library has passes of real numbers"
LARGEST = "the means are alike, our largest of some thousand errors is above"
CHANCE = "of five times as many numbers both have the same largest error"
# Where XLA is closer, with the reason: larger problems than those of the conformance cases, in which it is not.
KNOWN = {
    "dot_general complex64": LONG_CHAINS, "dot_general complex128": LONG_CHAINS,
    "dot_general matrix by vector complex64": VECTORS, "dot_general matrix by vector complex128": VECTORS,
    "convolution float64": LARGEST, "mean float64": CHANCE, "cumsum float64": LARGEST, "cumlogsumexp float32": LARGEST, "product complex128": LARGEST, "fft of 30 complex64": CHANCE,
    "rfft of 64": HALVES,
}
MARGIN = 1.25  # of the largest of some thousand errors of random sums: what is nearer is chance
ROUNDS = 4
RANDOM = np.random.RandomState(7)
TYPES = ["float32", "float64", "complex64", "complex128"]


def wide(x):
    return x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def exact_dft(x, sign=-1):
    """The transform along the last dimension by its definition."""
    n = x.shape[-1]
    turn = np.outer(np.arange(n), np.arange(n)) % n
    angle = sign * 2 * np.arctan2(np.longdouble(0), np.longdouble(-1)) * turn / np.longdouble(n)
    return wide(x) @ (np.cos(angle) + 1j * np.sin(angle))


def windows(x, width, combine):
    return combine(np.lib.stride_tricks.sliding_window_view(wide(x), width, axis=0), axis=-1)


def window_sum(width):
    return lambda x: jax.lax.reduce_window(x, np.zeros((), x.dtype), jax.lax.add, (width,) + (1,) * (x.ndim - 1), (1,) * x.ndim, "VALID")


def logsumexp(x):
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(wide(x) - top).sum(axis=-1)) + top[..., 0]


def cumlogsumexp(x):
    return np.log(np.cumsum(np.exp(wide(x)), axis=0))


def softmax(x):
    e = np.exp(wide(x) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# name: the function, the exact one, the shapes of its arguments, and whether it takes complex numbers, real ones, or both
ROWS = {
    "sum of long rows": (lambda x: x.sum(1), lambda x: wide(x).sum(1), [(40, 20_003)], "rc"),
    "sum of rows": (lambda x: x.sum(1), lambda x: wide(x).sum(1), [(200, 1000)], "rc"),
    "sum of columns": (lambda x: x.sum(0), lambda x: wide(x).sum(0), [(1000, 200)], "rc"),
    "mean": (lambda x: x.mean(1), lambda x: wide(x).mean(1), [(200, 1000)], "rc"),
    "variance": (lambda x: x.var(1), lambda x: wide(x).var(1), [(200, 1000)], "r"),
    "product": (lambda x: x.prod(1), lambda x: wide(x).prod(1), [(200, 30)], "rc"),
    "cumsum": (lambda x: jnp.cumsum(x, 0), lambda x: np.cumsum(wide(x), 0), [(1000, 20)], "rc"),
    "cumprod": (lambda x: jnp.cumprod(x, 0), lambda x: np.cumprod(wide(x), 0), [(30, 20)], "rc"),
    "cumlogsumexp": (lambda x: jax.lax.cumlogsumexp(x, 0), cumlogsumexp, [(1000, 20)], "r"),
    "reduce_window sum of 8": (window_sum(8), lambda x: windows(x, 8, np.sum), [(500, 20)], "rc"),
    "reduce_window sum of 100": (window_sum(100), lambda x: windows(x, 100, np.sum), [(500, 20)], "rc"),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=-1), logsumexp, [(100, 300)], "r"),
    "softmax": (lambda x: jax.nn.softmax(x, axis=-1), softmax, [(100, 300)], "r"),
    "dot_general": (lambda a, b: jnp.matmul(a, b, precision="highest"), lambda a, b: wide(a) @ wide(b), [(70, 300), (300, 50)], "rc"),
    "dot_general matrix by vector": (lambda a, b: jnp.matmul(a, b, precision="highest"), lambda a, b: wide(a) @ wide(b), [(300, 500), (500,)], "rc"),
    "convolution": (lambda x, w: jnp.convolve(x, w, precision="highest"), lambda x, w: np.convolve(wide(x), wide(w)), [(500,), (64,)], "r"),
    **{f"fft of {n}": (jnp.fft.fft, exact_dft, [(20, n)], "c") for n in (8, 30, 64, 97, 210, 256, 1000, 1024)},
    **{f"ifft of {n}": (jnp.fft.ifft, lambda x: exact_dft(x, 1) / x.shape[-1], [(20, n)], "c") for n in (64, 210, 1000)},
    **{f"rfft of {n}": (jnp.fft.rfft, lambda x: exact_dft(x)[..., :x.shape[-1] // 2 + 1], [(20, n)], "r") for n in (64, 97, 210, 1024)},
}


def row(url, table, name, dtype):
    function, truth, shapes, _ = ROWS[name]
    jitted, errors = jax.jit(function), ([], [])
    for _ in range(ROUNDS):
        args = []
        for shape in shapes:
            x = RANDOM.randn(*shape)
            args.append((x + 1j * RANDOM.randn(*shape) if dtype.name in PART else x).astype(dtype))
        wanted = truth(*args)
        unit = float(limits_of(dtype).eps) * np.abs(wanted).max()
        for some, got in zip(errors, (meshd(url, jitted.lower(*args).as_text(), args)[0], np.asarray(jitted(*args)))):
            some.extend(np.abs(wide(got) - wanted).reshape(-1) / unit)
    table.add(name, dtype.name, *errors)


def check(url, word):
    table = Table("units in the last place of the largest number of a result", KNOWN, MARGIN)
    for name, (_, _, _, takes) in ROWS.items():
        for dtype in TYPES:
            if word in name and ("c" if dtype in PART else "r") in takes:
                row(url, table, name, np.dtype(dtype))
    return table.finish()
