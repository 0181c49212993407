"""Programs on one device for survey.py, of the kind that people write: parts of models, losses, statistics, images, simulations."""
import jax
import jax.nn as nn
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf

from plain_rows import KEY, NHWC, SQUARE, bfloats, convolved, layer_norm, normal, pooled, uniform, whole


def chosen(x, labels):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), labels[:, None], 1))


def rotated(x, cosine, sine):
    a, b = x[..., :32], x[..., 32:]
    return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)


def causal_attention(q, k, v):
    length = q.shape[1]
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, -1), v)


def gru(h, xs, w, u):
    def step(h, x):
        r, z, c = jnp.split(x @ w + h @ u, 3, -1)
        z = nn.sigmoid(z)
        h = (1 - z) * h + z * jnp.tanh(c * nn.sigmoid(r))
        return h, h
    return lax.scan(step, h, xs)


def k_means(x, centres):
    nearest = ((x[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
    sums = jax.ops.segment_sum(x, nearest, len(centres))
    return sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(len(x)), nearest, len(centres)), 1)[:, None]


def life(g):
    around = sum(jnp.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return jnp.where((around == 3) | ((g == 1) & (around == 2)), 1, 0).astype(jnp.int32)


def laplacian(x):
    return x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


def lorenz(s):
    def step(_, s):
        return s + 0.01 * jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])
    return lax.fori_loop(0, 100, step, s)


def mandelbrot(c):
    def step(_, state):
        z, k = state
        z = z * z + c
        return z, k + (jnp.abs(z) < 2)
    return lax.fori_loop(0, 20, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


def black_scholes(s, k, t):
    d = (jnp.log(s / k) + 0.065 * t) / (0.3 * jnp.sqrt(t))
    below = lambda x: 0.5 * (1 + erf(x / np.sqrt(2)))
    return s * below(d) - k * jnp.exp(-0.02 * t) * below(d - 0.3 * jnp.sqrt(t))


def adam(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


def conv_relu_pool(x, w, b):
    return pooled(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1))(nn.relu(convolved(*NHWC)(x, w) + b))


HEADS = (4, 128, 8, 64)
PLANE = (np.linspace(-2, 1, 500)[None] + 1j * np.linspace(-1, 1, 400)[:, None]).astype(np.complex64)

ROWS = {  # name: function, arguments
    "cross entropy 4096x1000": (chosen, normal(4096, 1000), whole(0, 1000, 4096)),
    "its value and gradient": (jax.value_and_grad(chosen), normal(4096, 1000), whole(0, 1000, 4096)),
    "gradient, 100 classes": (jax.grad(chosen), normal(4096, 100), whole(0, 100, 4096)),
    "binary cross entropy": (lambda x, y: jnp.mean(jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))), normal(10**6), uniform(10**6)),
    "Huber loss": (lambda x, y: jnp.mean(jnp.where(jnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5)), normal(10**6), normal(10**6)),
    "rotary embedding": (rotated, normal(*HEADS), normal(128, 1, 32), normal(128, 1, 32)),
    "causal attention": (causal_attention, normal(*HEADS), normal(*HEADS), normal(*HEADS)),
    "swiglu": (lambda x, a, b: nn.silu(x @ a) * (x @ b), normal(256, 256), normal(256, 512), normal(256, 512)),
    "root mean square norm": (lambda x, g: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g, normal(4096, 256), normal(256)),
    "layer norm of bf16": (layer_norm, *bfloats((4096, 256))),
    "softmax of bf16": (nn.softmax, *bfloats((4096, 128))),
    "bf16 MLP": (lambda x, a, b: nn.gelu(x @ a) @ b, *bfloats((256, 256), (256, 1024), (1024, 256))),
    "GRU, 50 steps": (gru, normal(32, 64), normal(50, 32, 64), normal(64, 192) / 8, normal(64, 192) / 8),
    "convolution, relu, pool": (conv_relu_pool, normal(8, 64, 64, 16), normal(3, 3, 16, 32), normal(32)),
    "batch norm, NHWC": (lambda x, m, s, b: nn.relu((x - m) * s + b), normal(8, 64, 64, 32), normal(32), normal(32), normal(32)),
    "batch statistics, NHWC": (lambda x: (x.mean((0, 1, 2)), x.var((0, 1, 2))), normal(8, 64, 64, 32)),
    "batch statistics, NCHW": (lambda x: (x.mean((0, 2, 3)), x.var((0, 2, 3))), normal(8, 32, 64, 64)),
    "Adam": (adam, normal(10**6), normal(10**6), normal(10**6), uniform(10**6)),
    "embedding bag": (lambda t, i: t[i].mean(1), normal(10000, 32), whole(0, 10000, 1000, 20)),
    "elements by pairs of indices": (lambda a, i, j: a[i, j], normal(*SQUARE), whole(0, 1000, 10**5), whole(0, 1000, 10**5)),
    "top 1 accuracy": (lambda x, y: (x.argmax(1) == y).mean(), normal(10000, 100), whole(0, 100, 10000)),
    "argmin of rows of 20": (lambda x: x.argmin(1), normal(10000, 20)),
    "k-means step": (k_means, normal(10000, 16), normal(20, 16)),
    "segment sum of rows": (lambda x, i: jax.ops.segment_sum(x, i, 20), normal(10000, 16), whole(0, 20, 10000)),
    "scores of rows of 100": (lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), normal(10000, 100)),
    "norms of rows": (lambda x: jnp.linalg.norm(x, axis=1), normal(10000, 100)),
    "rows over their norms": (lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), normal(10000, 128)),
    "cosine similarity": (lambda a, b: (a * b).sum(1) / (jnp.linalg.norm(a, axis=1) * jnp.linalg.norm(b, axis=1)), normal(10000, 64), normal(10000, 64)),
    "covariance": (lambda x: jnp.cov(x.T), normal(10000, 64)),
    "masked mean": (lambda x, m: jnp.where(m, x, 0).sum(1) / m.sum(1), normal(10000, 100), uniform(10000, 100) < 0.5),
    "median of rows": (lambda x: jnp.median(x, axis=1), normal(1000, 101)),
    "sum of dims 0 and 2": (lambda x: x.sum((0, 2)), normal(64, 100, 160)),
    "a column beside rows of 10": (jnp.multiply, normal(100000, 10), normal(100000, 1)),
    "a column beside rows of 100": (jnp.multiply, normal(10000, 100), normal(10000, 1)),
    "one_hot 100000x10": (lambda i: nn.one_hot(i, 10), whole(0, 10, 100000)),
    "repeat": (lambda a: jnp.repeat(a, 4, axis=1), normal(1000, 250)),
    "tile": (lambda a: jnp.tile(a, (2, 3)), normal(500, 300)),
    "stack": (lambda *a: jnp.stack(a, -1), *[normal(500, 500) for _ in range(4)]),
    "computed columns side by side": (lambda a, b: jnp.concatenate([a * 2, b + 1], -1), normal(10000, 50), normal(10000, 50)),
    "rot90": (jnp.rot90, normal(*SQUARE)),
    "every other of both": (lambda a: a[::2, ::2], normal(2000, 2000)),
    "bilinear resize": (lambda a: jax.image.resize(a, (8, 64, 64, 16), "bilinear"), normal(8, 32, 32, 16)),
    "moving average": (lambda x: jnp.convolve(x, jnp.ones(20) / 20, mode="valid"), normal(100000)),
    "Laplacian": (laplacian, normal(*SQUARE)),
    "game of life": (life, whole(0, 2, 500, 500)),
    "Lorenz, 100 steps": (lorenz, normal(3, 1000)),
    "Mandelbrot, 20 steps": (mandelbrot, PLANE),
    "Black-Scholes": (black_scholes, uniform(10**6) + 1, uniform(10**6) + 1, uniform(10**6) + 1),
    "pi by chance": (lambda k: (jnp.square(jax.random.uniform(k, (10**6, 2))).sum(1) < 1).mean() * 4, KEY),
    "dropout": (lambda k, x: jnp.where(jax.random.bernoulli(k, 0.9, x.shape), x / 0.9, 0), KEY, normal(*SQUARE)),
    "population count": (lax.population_count, whole(0, 2**30, 10**6)),
    "exponential of complex": (jnp.exp, (normal(10**5) + 1j * normal(10**5)).astype(np.complex64)),
}
