"""Programs over eight devices for survey.py: what people cut over devices, and each kind of op over a dimension that is cut.

Imported after XLA_FLAGS are set. A row has a function, its arguments, the PartitionSpec of each leaf, and a mesh.
"""
from dataclasses import dataclass

import jax
import jax.nn as nn
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

RANDOM = np.random.default_rng(0)
LINE = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
GRID = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
NEXT = [(i, (i + 1) % 8) for i in range(8)]
KEY = np.array([0, 1], np.uint32)


@dataclass
class Row:
    function: object
    specs: tuple
    arguments: tuple
    mesh: object = LINE

    def jitted(self):
        shardings = jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), self.specs, is_leaf=lambda s: isinstance(s, P))
        return jax.jit(self.function, in_shardings=shardings, keep_unused=True)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def weights(*shape):
    return (normal(*shape) / np.sqrt(shape[-2])).astype(np.float32)


def whole(low, high, *shape):
    return RANDOM.integers(low, high, shape).astype(np.int32)


def positive(*shape):
    return np.abs(normal(*shape)) + 1


def by_shard(function, ins, outs):
    return jax.shard_map(function, mesh=LINE, in_specs=ins, out_specs=outs, check_vma=False)


def repeat(count, step):
    """A function that applies `step` so many times."""
    return lambda x, *rest: lax.fori_loop(0, count, lambda i, state: step(state, *rest), x)


# Training

def linear_regression(w, x, y):
    return w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)


def layers_step(layers, x, y):
    def loss(layers):
        h = x
        for layer in layers:
            h = jnp.tanh(h @ layer)
        return ((h - y) ** 2).mean()
    value, gradients = jax.value_and_grad(loss)(layers)
    return jax.tree.map(lambda p, g: p - 0.01 * g, layers, gradients), value


def adam(p, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def cross_entropy(h, e, y):
    def loss(h, e):
        return -jnp.take_along_axis(nn.log_softmax(h @ e), y[:, None], 1).mean()
    return jax.value_and_grad(loss, (0, 1))(h, e)


def convolved(x, kernel, stride=1, padding="SAME"):
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolutions_gradient(kernels, x):
    def loss(kernels):
        h = x
        for kernel in kernels:
            h = nn.relu(convolved(h, kernel))
        return h.mean()
    return jax.grad(loss)(kernels)


# Transformers and their relatives

def layer_norm(x, g):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g


def block(p, x):
    batch, length, width = x.shape
    h = layer_norm(x, p["g"])
    q, k, v = ((h @ p[name]).reshape(batch, length, 8, width // 8) for name in "qkv")
    score = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // 8)
    score = jnp.where(jnp.tril(jnp.ones((length, length), bool)), score, -1e9)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(score), v).reshape(x.shape) @ p["o"]
    return x + nn.gelu(layer_norm(x, p["g"]) @ p["up"]) @ p["down"]


def block_gradient(p, x):
    return jax.grad(lambda p: (block(p, x) ** 2).mean())(p)


BLOCK = {"g": np.ones(256, np.float32), **{name: weights(256, 256) for name in "qkvo"}, "up": weights(256, 1024), "down": weights(1024, 256)}
BLOCK_WHOLE = {name: P() for name in BLOCK}
BLOCK_CUT = {"g": P(), "o": P("x"), "down": P("x"), **{name: P(None, "x") for name in ("q", "k", "v", "up")}}


def ring_attention(q, k, v):
    def step(i, state):
        k, v, top, total, out = state
        score = q @ k.swapaxes(-1, -2) / 8
        new_top = jnp.maximum(top, score.max(-1, keepdims=True))
        weight, factor = jnp.exp(score - new_top), jnp.exp(top - new_top)
        total, out = total * factor + weight.sum(-1, keepdims=True), out * factor + weight @ v
        return lax.ppermute(k, "x", NEXT), lax.ppermute(v, "x", NEXT), new_top, total, out
    top = jnp.full((*q.shape[:-1], 1), -jnp.inf)
    *_, total, out = lax.fori_loop(0, 8, step, (k, v, top, jnp.zeros_like(top), jnp.zeros_like(q)))
    return out / total


def experts(x, w):
    """Each device's tokens go to the experts of all devices, and come back."""
    parts = lax.all_to_all(x.reshape(8, -1, x.shape[1]), "x", 0, 0)
    made = nn.relu(parts.reshape(-1, x.shape[1]) @ w[0])
    return lax.all_to_all(made.reshape(8, -1, made.shape[-1]), "x", 0, 0).reshape(x.shape[0], -1)


def pipeline(layer, batches):
    """Each device has a layer; batches go from one to the next."""
    first, carried, out = lax.axis_index("x") == 0, jnp.zeros_like(batches[0]), []
    for step in range(12):
        given = jnp.where(first, batches[min(step, len(batches) - 1)], carried)
        out.append(jnp.tanh(given @ layer[0]))
        carried = lax.ppermute(out[-1], "x", NEXT)
    return jnp.stack(out)[None]


def layers_scanned(layers, x):
    return lax.scan(lambda h, layer: (jnp.tanh(h @ layer), None), x, layers)[0]


def lstm(w, xs):
    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], 1) @ w, 4, 1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        return (nn.sigmoid(o) * jnp.tanh(c), c), None
    zeros = jnp.zeros((xs.shape[1], w.shape[1] // 4))
    return lax.scan(cell, (zeros, zeros), xs)[0]


# Science

def neighbours(x):
    return sum(jnp.roll(x, shift, axis) for shift in (1, -1) for axis in (0, 1))


def life(x):
    count = sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((count == 3) | ((x == 1) & (count == 2))).astype(jnp.int32)


def jacobi(x, b):
    p = jnp.pad(x, 1)
    return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + b) / 4


def k_means(x, centres):
    distance = (x * x).sum(1)[:, None] - 2 * x @ centres.T + (centres * centres).sum(1)
    member = nn.one_hot(jnp.argmin(distance, 1), centres.shape[0])
    return (member.T @ x) / jnp.maximum(member.sum(0)[:, None], 1)


def conjugate_gradient(a, b):
    def step(i, state):
        x, r, p, squares = state
        moved = a @ p
        length = squares / (p @ moved)
        x, r = x + length * p, r - length * moved
        return x, r, r + (r @ r) / squares * p, r @ r
    return lax.fori_loop(0, 10, step, (jnp.zeros_like(b), b, b, b @ b))[0]


def power_iteration(v, a):
    moved = a @ v
    return moved / jnp.linalg.norm(moved)


def halved_until_small(x):
    def halve(state):
        half = 0.5 * state[0]
        return half, jnp.abs(half).max()
    return lax.while_loop(lambda state: state[1] > 1e-3, halve, (x, jnp.float32(1)))


def pi_by_chance(key):
    points = lax.with_sharding_constraint(jax.random.uniform(key, (8, 200_000, 2)), NamedSharding(LINE, P("x")))
    return (4.0 * ((points**2).sum(-1) < 1)).mean()


def definite(count, order):
    a = normal(count, order, order)
    return a @ a.swapaxes(1, 2) + order * np.eye(order, dtype=np.float32)


X, COLUMNS, ALL = P("x"), P(None, "x"), P()
ROWS = {
    "linear regression": Row(linear_regression, (ALL, X, X), (normal(256), normal(8192, 256), normal(8192))),
    "layers, weights cut": Row(layers_step, ([X] * 4, X, X), ([weights(512, 512) for _ in range(4)], normal(512, 512), normal(512, 512))),
    "adam": Row(adam, (X,) * 4, (normal(2**21), normal(2**21), positive(2**21), normal(2**21))),
    "cross entropy, classes cut": Row(cross_entropy, (ALL, COLUMNS, ALL), (normal(256, 256), weights(256, 8192), whole(0, 8192, 256))),
    "cross entropy, batch cut": Row(cross_entropy, (X, ALL, X), (normal(256, 256), weights(256, 8192), whole(0, 8192, 256))),
    "gradient of convolutions": Row(convolutions_gradient, ([ALL] * 2, X), ([weights(3, 3, 16, 32), weights(3, 3, 32, 32)], normal(32, 32, 32, 16))),
    "convolution, height cut": Row(convolved, (P(None, "x"), ALL), (normal(4, 128, 128, 16), weights(3, 3, 16, 32))),
    "patches 16x16": Row(lambda x, k: convolved(x, k, 16, "VALID"), (X, ALL), (normal(16, 224, 224, 3), weights(16, 16, 3, 192))),
    "MLP, hidden units cut": Row(lambda a, b, x: nn.gelu(x @ a) @ b, (COLUMNS, X, ALL), (weights(512, 2048), weights(2048, 512), normal(128, 512))),
    "block, heads cut": Row(block, (BLOCK_CUT, ALL), (BLOCK, normal(4, 128, 256))),
    "block, batch cut": Row(block, (BLOCK_WHOLE, X), (BLOCK, normal(8, 128, 256))),
    "gradient of a block, heads cut": Row(block_gradient, (BLOCK_CUT, ALL), (BLOCK, normal(4, 128, 256))),
    "gradient of a block, batch cut": Row(block_gradient, (BLOCK_WHOLE, X), (BLOCK, normal(8, 128, 256))),
    "ring attention": Row(by_shard(ring_attention, (P(None, None, "x"),) * 3, P(None, None, "x")), (P(None, None, "x"),) * 3,
                          tuple(normal(2, 4, 1024, 64) for _ in range(3))),
    "experts": Row(by_shard(experts, (X, X), X), (X, X), (normal(4096, 256), normal(8, 256, 512))),
    "pipeline": Row(by_shard(pipeline, (X, ALL), X), (X, ALL), (weights(8, 256, 256), normal(4, 64, 256))),
    "scan of layers, columns cut": Row(layers_scanned, (P(None, None, "x"), ALL), (weights(12, 256, 256), normal(64, 256))),
    "scan of layers, batch cut": Row(layers_scanned, (ALL, X), (weights(12, 256, 256), normal(512, 256))),
    "LSTM, batch cut": Row(lstm, (ALL, COLUMNS), (weights(128, 256), normal(32, 64, 64))),
    "heat, rows cut": Row(repeat(20, lambda x: x + 0.1 * (neighbours(x) - 4 * x)), (X,), (normal(1024, 1024),)),
    "heat, grid": Row(repeat(20, lambda x: x + 0.1 * (neighbours(x) - 4 * x)), (P("x", "y"),), (normal(256, 256),), GRID),
    "game of life": Row(life, (X,), (whole(0, 2, 1024, 1024),)),
    "Jacobi, grid": Row(repeat(10, jacobi), (P("x", "y"),) * 2, (normal(512, 512), normal(512, 512)), GRID),
    "k-means": Row(k_means, (X, ALL), (normal(32768, 32), normal(64, 32))),
    "conjugate gradient": Row(conjugate_gradient, (X, ALL), (definite(1, 1024)[0], normal(1024))),
    "power iteration": Row(repeat(10, power_iteration), (ALL, X), (normal(1024), normal(1024, 1024))),
    "Newton, 20 steps": Row(lambda x: lax.fori_loop(0, 20, lambda i, y: 0.5 * (y + x / y), x), (X,), (positive(2**18),)),
    "halved until small": Row(halved_until_small, (X,), (normal(2**16),)),
    "pi by chance": Row(pi_by_chance, (ALL,), (KEY,)),
    "product, 2x4": Row(jnp.matmul, (P("x", "y"),) * 2, (normal(1024, 1024), normal(1024, 1024)), GRID),
    "product, columns cut": Row(jnp.matmul, (ALL, COLUMNS), (normal(512, 512), normal(512, 512))),
    "product 128": Row(jnp.matmul, (X, ALL), (normal(128, 128), normal(128, 128))),
    "products of a batch": Row(jnp.matmul, (X, X), (normal(64, 128, 128), normal(64, 128, 128))),
    "matrix by vector": Row(jnp.matmul, (X, ALL), (normal(2048, 2048), normal(2048))),
    "bf16 product": Row(jnp.matmul, (X, ALL), tuple(normal(1024, 1024).astype(jnp.bfloat16) for _ in range(2))),
    "three products": Row(lambda a, b, c: (a @ b) @ c, (X, COLUMNS, X), tuple(normal(512, 512) for _ in range(3))),
    "511x300, not cut": Row(lambda x: jnp.tanh(x) @ x.T, (ALL,), (normal(511, 300),)),
    "heads by heads": Row(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), (P(None, None, "x"),) * 2, tuple(normal(2, 256, 8, 64) for _ in range(2))),
    "softmax over the cut dim": Row(lambda x: nn.softmax(x, 1), (COLUMNS,), (normal(1024, 4096),)),
    "softmax of short rows": Row(nn.softmax, (X,), (normal(25600, 10),)),
    "layer norm": Row(layer_norm, (X, ALL), (normal(4096, 512), normal(512))),
    "layer norm over the cut dim": Row(layer_norm, (COLUMNS, X), (normal(4096, 512), normal(512))),
    "batch norm": Row(lambda x: (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5), (X,), (normal(32, 32, 32, 32),)),
    "dropout": Row(lambda k, x: jnp.where(jax.random.bernoulli(k, 0.9, x.shape), x / 0.9, 0), (ALL, X), (KEY, normal(1024, 1024))),
    "mean and variance": Row(lambda x: (x.mean(), x.var()), (X,), (normal(2**21),)),
    "columns to mean 0": Row(lambda x: (x - x.mean(0)) / x.std(0), (X,), (normal(16384, 64),)),
    "covariance": Row(lambda x: jnp.cov(x.T), (X,), (normal(16384, 64),)),
    "log of a sum": Row(jsp.special.logsumexp, (X,), (normal(2**20),)),
    "distances": Row(lambda x, y: jnp.sqrt(jnp.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T, 0)), (X, ALL), (normal(1024, 64), normal(1024, 64))),
    "where and clip": Row(lambda x: jnp.where(x > 0, jnp.clip(x, 0, 1), 0.1 * x), (X,), (normal(2**20),)),
    "maximum 2x2": Row(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), (X,), (normal(16, 64, 64, 32),)),
    "fft of rows": Row(jnp.fft.fft, (X,), (normal(1024, 512),)),
    "fft2, rows cut": Row(lambda x: jnp.abs(jnp.fft.fft2(x)), (X,), (normal(512, 512),)),
    "sort over the cut dim": Row(jnp.sort, (X,), (normal(2**18),)),
    "sort of rows": Row(lambda x: jnp.sort(x, 1), (X,), (normal(1024, 1024),)),
    "top 16 over the cut dim": Row(lambda x: lax.top_k(x, 16), (COLUMNS,), (normal(64, 32768),)),
    "argmax over the cut dim": Row(lambda x: jnp.argmax(x, 1), (COLUMNS,), (normal(256, 8192),)),
    "cumsum of rows": Row(lambda x: jnp.cumsum(x, 1), (X,), (normal(1024, 1024),)),
    "rows by index, table cut": Row(lambda t, i: t[i], (X, ALL), (normal(32768, 128), whole(0, 32768, 2048))),
    "rows by index, indices cut": Row(lambda t, i: t[i], (ALL, X), (normal(32768, 128), whole(0, 32768, 2048))),
    "rows added, table cut": Row(lambda t, i, u: t.at[i].add(u), (X, ALL, ALL), (normal(32768, 64), whole(0, 32768, 4096), normal(4096, 64))),
    "segment_sum": Row(lambda a, i: jax.ops.segment_sum(a, i, 1000), (X, X), (normal(2**18, 8), whole(0, 1000, 2**18))),
    "bincount": Row(lambda i: jnp.bincount(i, length=256), (X,), (whole(0, 256, 2**20),)),
    "transpose": Row(lambda x: lax.with_sharding_constraint(x.T, NamedSharding(LINE, X)), (X,), (normal(2048, 2048),)),
    "all_gather": Row(by_shard(lambda x: lax.all_gather(x, "x", tiled=True), X, ALL), (X,), (normal(2**20),)),
    "psum_scatter": Row(by_shard(lambda x: lax.psum_scatter(x, "x", tiled=True), ALL, X), (ALL,), (normal(2**20),)),
    "psum, 50 times": Row(by_shard(repeat(50, lambda x: lax.psum(x, "x") * 0.125), X, X), (X,), (normal(1024),)),
    "ppermute, 8 times": Row(by_shard(repeat(8, lambda x: lax.ppermute(x, "x", NEXT)), X, X), (X,), (normal(2**20),)),
    "pmax and pmin": Row(by_shard(lambda x: (lax.pmax(x, "x"), lax.pmin(x, "x")), X, (ALL, ALL)), (X,), (normal(2**19),)),
    "128 solutions of 32": Row(jnp.linalg.solve, (X, X), (definite(128, 32), normal(128, 32, 4))),
    "64 factors of 64": Row(jnp.linalg.cholesky, (X,), (definite(64, 64),)),
    "64 times singular values": Row(lambda a: jnp.linalg.svd(a, compute_uv=False), (X,), (normal(64, 16, 16),)),
}
