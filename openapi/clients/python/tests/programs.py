"""Programs of the size that people bring, in plain JAX: rows as in functions.py.

Each row: name, function, arguments, keyword arguments. Expected is what JAX gives for the same call.
"""

import functools
from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.optimize
import ml_dtypes
import numpy as np
from jax import lax
from jax.experimental import sparse
from jax.experimental.ode import odeint

R = np.random.default_rng(11)
ROWS = []


def row(name, function, *args, **kwargs):
    ROWS.append((name, function, args, kwargs))


def normal(*shape):
    return R.standard_normal(shape).astype(np.float32)


A = normal(6, 6)
S = A @ A.T + 6 * np.eye(6, dtype=np.float32)
B = normal(6, 4)
KEY = jax.random.key(7)


# A transformer with dropout and remat, and the step of Adam that trains it


class State(NamedTuple):
    count: object
    mean: object
    square: object
    extra: object = None


def layer_norm(p, x):
    return p["g"] * (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) + p["b"]


@functools.partial(jax.checkpoint, static_argnums=(3,))
def block(p, x, key, is_training):
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", layer_norm(p["n1"], x), p["qkv"]), 2, 0)
    attended = jnp.einsum("bthk,hkd->btd", jax.nn.dot_product_attention(q, k, v, is_causal=True), p["o"])
    if is_training:
        attended = jnp.where(jax.random.bernoulli(key, 0.9, attended.shape), attended / 0.9, 0.0)
    x = x + attended
    return x + jax.nn.gelu(layer_norm(p["n2"], x) @ p["up"]) @ p["down"]


def loss_of(params, ids, key, is_training=True):
    x = params["embedding"][ids[:, :-1]]

    def step(carry, p):
        x, key = carry
        key, now = jax.random.split(key)
        return (block(p, x, now, is_training), key), None

    (x, _), _ = lax.scan(step, (x, key), params["blocks"])
    logits = jax.nn.log_softmax(x @ params["embedding"].T)
    return -jnp.take_along_axis(logits, ids[:, 1:, None], -1).mean()


def parameters():
    norm = {"g": np.ones((2, 16), np.float32), "b": np.zeros((2, 16), np.float32)}
    return {
        "embedding": 0.3 * normal(20, 16),
        "blocks": {
            "n1": norm,
            "n2": norm,
            "qkv": 0.2 * normal(2, 16, 3, 4, 4),
            "o": 0.2 * normal(2, 4, 4, 16),
            "up": 0.2 * normal(2, 16, 32),
            "down": 0.2 * normal(2, 32, 16),
        },
    }


def adam(params, state, grads):
    # A large epsilon: where a gradient is rounding alone, Adam would make a step of it.
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state.square, grads)
    scale = jnp.sqrt(1 - 0.99 ** (state.count + 1.0)) / (1 - 0.9 ** (state.count + 1.0))
    params = jax.tree.map(lambda p, m, s: p - 1e-2 * scale * m / (jnp.sqrt(s) + 1e-2), params, mean, square)
    return params, State(state.count + 1, mean, square)


def train_step(params, state, ids, key):
    key, now = jax.random.split(key)
    loss, grads = jax.value_and_grad(loss_of)(params, ids, now)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
    return *adam(params, state, grads), key, loss


PARAMETERS = parameters()
ZEROS = jax.tree.map(np.zeros_like, PARAMETERS)
IDS = R.integers(0, 20, (3, 9)).astype(np.int32)
row("transformer step", train_step, PARAMETERS, State(np.int32(0), ZEROS, ZEROS), IDS, KEY)
row("transformer loss", lambda p, i, k: loss_of(p, i, k, False), PARAMETERS, IDS, KEY)


# An LSTM over time, and its gradient


def lstm(p, x):
    def step(carry, now):
        h, c = carry
        i, f, g, o = jnp.split(now @ p["w"] + h @ p["u"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((x.shape[1], 8))
    return lax.scan(step, (start, start), x)[1]


row("lstm", lstm, {"w": normal(5, 32), "u": 0.3 * normal(8, 32)}, normal(7, 3, 5))
row(
    "lstm grad",
    jax.grad(lambda p, x: lstm(p, x).sum()),
    {"w": normal(5, 32), "u": 0.3 * normal(8, 32)},
    normal(7, 3, 5),
)


# A convolutional net with batch statistics as auxiliary output


def cnn(p, x):
    y = lax.conv_general_dilated(x, p["k"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
    y = jax.nn.relu((y - mean) * lax.rsqrt(var + 1e-5))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return (y.reshape(y.shape[0], -1) @ p["w"]).sum(), (mean, var)


row(
    "cnn",
    jax.value_and_grad(cnn, has_aux=True),
    {"k": normal(3, 3, 3, 4), "w": normal(16, 2)},
    normal(2, 8, 8, 3),
)

# Differential equations, optimisation, sparse and iterative linear algebra


def pendulum(y, t):
    return jnp.stack([y[1], -jnp.sin(y[0])])


TIMES = np.linspace(0, 2, 5).astype(np.float32)
row("odeint", lambda y: odeint(pendulum, y, TIMES), np.array([1, 0], np.float32))
row("odeint grad", jax.grad(lambda y: odeint(pendulum, y, TIMES).sum()), np.array([1, 0], np.float32))
row("cg", lambda a, b: jax.scipy.sparse.linalg.cg(a, b, maxiter=6)[0], S, B[:, 0])
row("sparse matrix as an argument", lambda s, b: s @ b, sparse.BCOO.fromdense(np.where(A > 0, A, 0)), B)


def newton(f, x):
    return lax.fori_loop(0, 9, lambda i, v: v - f(v) / (2 * v), x)


row("custom_root", lambda a: lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0)), 2.0)
row("custom_linear_solve", jax.grad(
    lambda b: lax.custom_linear_solve(lambda x: S @ x, b, lambda _, b: jnp.linalg.solve(S, b), symmetric=True).sum()
), B[:, 0])  # fmt: skip
row("expm", jax.scipy.linalg.expm, 0.3 * A)
row("slogdet grad", jax.grad(lambda a: jnp.linalg.slogdet(a)[1]), S)
row("solves of a batch", jax.vmap(jnp.linalg.solve), np.stack([S, 2 * S]), normal(2, 6, 1))
row("svdvals grad", jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum()), B)
row("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], normal(6, 3), normal(6, 2))
row("fft there and back", lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, n=7), normal(3, 7))
row("fft grad", jax.grad(lambda x: jnp.abs(jnp.fft.fft(x)).sum()), normal(9))
row("fftconvolve", jax.scipy.signal.fftconvolve, normal(33), normal(9))

# Data
row("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 5), normal(20, 3), R.integers(0, 5, 20))
row("unique of a size", lambda x: jnp.unique(x, size=8, return_counts=True, fill_value=-1), R.integers(0, 6, 30))
row("nonzero of a size", lambda x: jnp.nonzero(x > 0, size=10, fill_value=-1), normal(12))
row("lexsort", lambda a, b: jnp.lexsort((a, b)), R.integers(0, 4, 20), R.integers(0, 4, 20))
row(
    "interp and searchsorted",
    lambda x, t: (jnp.interp(x, t, t**2), jnp.searchsorted(t, x)),
    normal(20),
    np.sort(normal(9)),
)
row("percentiles", lambda x: (jnp.percentile(x, jnp.array([5, 50, 95.0])), jnp.median(x), jnp.nanmean(x)), normal(100))
row("resize", lambda x: jax.image.resize(x, (7, 9, 3), "bilinear"), normal(4, 5, 3))
row(
    "map_coordinates",
    lambda x, c: jax.scipy.ndimage.map_coordinates(x, c, 1),
    normal(8, 8),
    [normal(5) + 3, normal(5) + 3],
)
row("modes of gathers and scatters", lambda x, i: (
    x.at[i].get(mode="fill", fill_value=-1), x.at[i].get(mode="clip"), x.at[i].set(0, mode="drop"), x.at[i].max(0.5)
), normal(4), np.array([0, 9, -1, 3]))  # fmt: skip
row(
    "bits",
    lambda x: (jnp.packbits(x), x.view(jnp.int8), lax.population_count(x)),
    R.integers(0, 2, 16).astype(np.uint8),
)
row("ragged_dot", lax.ragged_dot, normal(6, 4), normal(2, 4, 3), np.array([2, 4], np.int32))

# Transformations
row("collectives of a vmap", jax.vmap(lambda x: (lax.pmean(x, "i"), lax.axis_index("i")), axis_name="i"), normal(4, 3))
row("hvp", lambda x, v: jax.jvp(jax.grad(lambda x: (x**3).sum()), (x,), (v,))[1], normal(4), normal(4))
row("jacrev of a scan", jax.jacrev(lambda x: lax.scan(lambda c, a: (jnp.tanh(c * a), c), x[0], x)[1]), normal(5))
row("a policy of remat", jax.grad(jax.checkpoint(
    lambda w: jnp.tanh(jnp.tanh(A @ w) @ w).sum(), policy=jax.checkpoint_policies.dots_saveable
)), 0.3 * A)  # fmt: skip
row(
    "scan backwards, unrolled",
    lambda x: lax.scan(lambda c, a: (c * 0.9 + a, c), 0.0, x, reverse=True, unroll=3),
    normal(10),
)


def grow(state):
    return lax.while_loop(lambda v: v < state[1] * 10.0, lambda v: v * 1.5 + 1, state[0]), state[1] + 1


row("loops in loops", lambda x: lax.while_loop(lambda state: state[1] < 5, grow, (x, 0)), 1.0)

# Keys
row("a walk of keys", lambda k: lax.scan(
    lambda k, _: (jax.random.split(k)[0], jax.random.uniform(jax.random.split(k)[1])), k, None, 5
), KEY)  # fmt: skip
for name, more in {
    "gamma": (2.5, (9,)), "beta": (2.0, 3.0, (9,)), "poisson": (4.0, (9,)), "categorical": (np.zeros(3, np.float32), 0),
    "dirichlet": (np.ones(4, np.float32),), "truncated_normal": (-1.0, 1.0, (9,)), "choice": (10, (4,)),
    "binomial": (10.0, 0.4, (9,)), "orthogonal": (5,), "multivariate_normal": (np.zeros(6, np.float32), S),
}.items():  # fmt: skip
    row(f"random {name}", lambda k, name=name, more=more: getattr(jax.random, name)(k, *more), KEY)
row("no keys", lambda k: k, jax.random.split(KEY, 0))

# Trees and sizes
row("int keys", lambda d: {3: d[1] + d[2]}, {1: normal(2), 2: normal(2)})
row("an OrderedDict", lambda d: OrderedDict(reversed(d.items())), OrderedDict(b=normal(2), a=normal(3)))
row("a Partial", lambda f, x: f(x), jax.tree_util.Partial(jnp.multiply, 3.0), normal(3))
row(
    "a deep tree",
    lambda t: jax.tree.map(lambda x: x + 1, t),
    functools.reduce(lambda t, _: {"n": t, "v": 1.0}, range(60), {}),
)
row(
    "sizes of zero",
    lambda a, b: (a @ b, jnp.sort(a), a.sum(0), jnp.concatenate([a, a])),
    np.zeros((3, 0), np.float32),
    np.zeros((0, 4), np.float32),
)
row("a vmap over nothing", jax.vmap(lambda x: x.sum()), np.zeros((0, 4), np.float32))
row("a scan over nothing", lambda x: lax.scan(lambda c, a: (c + a, a), 0.0, x), np.zeros(0, np.float32))
row(
    "bfloat16 norm",
    lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
    normal(4, 16).astype(ml_dtypes.bfloat16),
)
row(
    "float8 product",
    lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
    normal(4, 4).astype(ml_dtypes.float8_e4m3fn),
    normal(4, 4).astype(ml_dtypes.float8_e4m3fn),
)
row("int4 arithmetic", lambda x: (x + x, -x, x.astype(jnp.int8).sum()), np.arange(-8, 8).astype(ml_dtypes.int4))
