"""Programs on one device for survey.py: small and plain, of every kind of op."""
import jax
import jax.nn as nn
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def bfloats(*shapes):
    return [normal(*shape).astype(jnp.bfloat16) for shape in shapes]


def uniform(*shape):
    return RANDOM.random(shape).astype(np.float32)


def whole(low, high, *shape, dtype=np.int32):
    return RANDOM.integers(low, high, shape).astype(dtype)


def definite(order):
    a = normal(order, order)
    return a @ a.T + order * np.eye(order, dtype=np.float32)


def classes(rows, count):
    return np.eye(count, dtype=np.float32)[RANDOM.integers(0, count, rows)]


def convolved(*dimension_numbers, stride=1, padding="SAME", **options):
    names = dimension_numbers or None
    return lambda x, w: lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), padding, dimension_numbers=names, **options)


def by_kernel(convolution):
    """The gradient of a sum of the result."""
    return jax.grad(lambda w, x: convolution(x, w).sum())


def pooled(reducer, init, window, strides, padding="VALID"):
    return lambda x: lax.reduce_window(x, init, reducer, window, strides, padding)


def attention(q, k, v):
    weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def quaternions(p, q):
    a, b, c, d = p.T
    e, f, g, h = q.T
    return jnp.stack([a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e], -1)


def rotary(x, cos, sin):
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def loss(w, v, x, y):
    return -(nn.log_softmax(jnp.tanh(x @ w) @ v) * y).sum(1).mean()


def recurrent(h, xs, w):
    return lax.scan(lambda h, x: (jnp.tanh(jnp.concatenate([h, x], 1) @ w), h), h, xs)


def integers_multiplied(a, b):
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


KEY = np.array([0, 1], np.uint32)
NHWC = ("NHWC", "HWIO", "NHWC")
SQUARE = (1000, 1000)

ROWS = {  # name: function, arguments
    "add": (jnp.add, normal(*SQUARE), normal(*SQUARE)),
    "where": (lambda a, b: jnp.where(a > 0, a, b), normal(*SQUARE), normal(*SQUARE)),
    "add a row": (jnp.add, normal(*SQUARE), normal(1000)),
    "add a column": (jnp.add, normal(*SQUARE), normal(1000, 1)),
    "outer 2000": (jnp.outer, normal(2000), normal(2000)),
    "polynomial": (lambda x: jnp.polyval(jnp.array([1.0, 2, 3, 4, 5]), x), normal(*SQUARE)),
    "gelu": (nn.gelu, normal(*SQUARE)),
    "erf": (jsp.special.erf, normal(*SQUARE)),
    "sine": (jnp.sin, normal(*SQUARE)),
    "power": (jnp.power, uniform(*SQUARE), normal(*SQUARE)),
    "integer divide": (lax.div, whole(-10**9, 10**9, 10**6), whole(1, 1000, 10**6)),
    "floor divide by 3": (lambda a: a // 3, whole(-10**9, 10**9, 10**6)),
    "broadcast a scalar": (lambda a: jnp.broadcast_to(a, SQUARE), np.float32(1)),
    "iota": (lambda: jnp.arange(10**6),),
    "one_hot 10000x100": (lambda i: nn.one_hot(i, 100), whole(0, 100, 10000)),
    "transpose 1000": (jnp.transpose, normal(*SQUARE)),
    "transpose 0213": (lambda a: jnp.transpose(a, (0, 2, 1, 3)), normal(16, 64, 16, 64)),
    "NHWC to NCHW": (lambda a: jnp.transpose(a, (0, 3, 1, 2)), normal(8, 64, 64, 32)),
    "reverse": (lambda a: a[::-1, ::-1], normal(*SQUARE)),
    "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), normal(1000, 500), normal(1000, 500)),
    "pad": (lambda a: jnp.pad(a, 1), normal(*SQUARE)),
    "roll": (lambda a: jnp.roll(a, 3, 1), normal(*SQUARE)),
    "sum of rows 25600x10": (lambda a: a.sum(1), normal(25600, 10)),
    "maximum of rows 25600x10": (lambda a: a.max(1), normal(25600, 10)),
    "sum of rows 8192x32": (lambda a: a.sum(1), normal(8192, 32)),
    "argmax 25600x10": (lambda a: jnp.argmax(a, 1), normal(25600, 10)),
    "variance of columns": (lambda a: a.var(0), normal(*SQUARE)),
    "variance of rows": (lambda a: a.var(1), normal(*SQUARE)),
    "layer norm 4096x256": (layer_norm, normal(4096, 256)),
    "logsumexp 4096x256": (lambda a: jsp.special.logsumexp(a, 1), normal(4096, 256)),
    "softmax 2560x10": (nn.softmax, normal(2560, 10)),
    "cumsum of rows": (lambda a: jnp.cumsum(a, 1), normal(*SQUARE)),
    "sort rows": (lambda a: jnp.sort(a, 1), normal(*SQUARE)),
    "top 10 of rows": (lambda a: lax.top_k(a, 10), normal(*SQUARE)),
    "rows by index": (lambda a, i: a[i], normal(100000, 64), whole(0, 100000, 10000)),
    "take along rows": (lambda a, i: jnp.take_along_axis(a, i, 1), normal(1000, 100), whole(0, 100, 1000, 100)),
    "scatter add of rows": (lambda a, i, u: a.at[i].add(u), normal(10000, 64), whole(0, 10000, 10000), normal(10000, 64)),
    "segment_sum": (lambda a, i: jax.ops.segment_sum(a, i, 1000), normal(10**6), whole(0, 1000, 10**6)),
    "bincount": (lambda i: jnp.bincount(i, length=100), whole(0, 100, 10**6)),
    "searchsorted": (jnp.searchsorted, np.sort(normal(10000)), normal(10000)),
    "histogram": (lambda a: jnp.histogram(a, bins=50), normal(100000)),
    "interp": (jnp.interp, normal(100000), np.sort(normal(1000)), normal(1000)),
    "uniform numbers": (lambda k: jax.random.uniform(k, (10**6,)), KEY),
    "normal numbers": (lambda k: jax.random.normal(k, (10**6,)), KEY),
    "permutation": (lambda k: jax.random.permutation(k, 100000), KEY),
    "matrix by vector 2000": (jnp.matmul, normal(2000, 2000), normal(2000)),
    "vector by matrix 2000": (lambda a, b: b @ a, normal(2000, 2000), normal(2000)),
    "10000 dot products of 64": (jax.vmap(jnp.dot), normal(10000, 64), normal(10000, 64)),
    "20000 products 4x4": (jnp.matmul, normal(20000, 4, 4), normal(20000, 4, 4)),
    "64 products 64x64": (jnp.matmul, normal(64, 64, 64), normal(64, 64, 64)),
    "int32 product 512": (jnp.matmul, whole(-9, 9, 512, 512), whole(-9, 9, 512, 512)),
    "int8 product 512": (integers_multiplied, whole(-9, 9, 512, 512, dtype=np.int8), whole(-9, 9, 512, 512, dtype=np.int8)),
    "bf16 product 64": (jnp.matmul, *bfloats((64, 64), (64, 64))),
    "bf16 product 256": (jnp.matmul, *bfloats((256, 256), (256, 256))),
    "bf16 product 1024": (jnp.matmul, *bfloats((1024, 1024), (1024, 1024))),
    "bf16 attention": (attention, *bfloats(*3 * [(4, 128, 8, 64)])),
    "distances 256x256x32": (lambda a, b: jnp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)), normal(256, 32), normal(256, 32)),
    "attention": (attention, normal(4, 128, 8, 64), normal(4, 128, 8, 64), normal(4, 128, 8, 64)),
    "convolution 3x3": (convolved(*NHWC), normal(8, 64, 64, 32), normal(3, 3, 32, 32)),
    "convolution 1x1": (convolved(*NHWC), normal(8, 32, 32, 64), normal(1, 1, 64, 128)),
    "convolution NCHW": (convolved(), normal(8, 16, 32, 32), normal(32, 16, 3, 3)),
    "convolution by channels": (convolved(*NHWC, feature_group_count=64), normal(8, 32, 32, 64), normal(3, 3, 1, 64)),
    "patches 16x16": (convolved(*NHWC, stride=16, padding="VALID"), normal(8, 224, 224, 3), normal(16, 16, 3, 192)),
    "patches 16x16 by kernel": (by_kernel(convolved(*NHWC, stride=16, padding="VALID")), normal(16, 16, 3, 192), normal(8, 224, 224, 3)),
    "convolution 7x7, stride 2": (convolved(*NHWC, stride=2), normal(4, 224, 224, 3), normal(7, 7, 3, 64)),
    "convolution 4x4, upwards": (convolved(*NHWC, lhs_dilation=(2, 2), padding=((2, 2), (2, 2))), normal(4, 16, 16, 64), normal(4, 4, 64, 32)),
    "convolution 3x3 by kernel": (by_kernel(convolved(*NHWC)), normal(3, 3, 32, 32), normal(8, 64, 64, 32)),
    "convolution of lines": (convolved("NWC", "WIO", "NWC"), normal(16, 1000, 16), normal(5, 16, 32)),
    "maximum 2x2": (pooled(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1)), normal(8, 64, 64, 32)),
    "sum 3x3": (pooled(lax.add, 0.0, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"), normal(8, 64, 64, 32)),
    "fft 1024x1024": (jnp.fft.fft, normal(1024, 1024)),
    "rfft 1000x1000": (jnp.fft.rfft, normal(1000, 1000)),
    "LU 1024": (jsp.linalg.lu_factor, normal(1024, 1024)),
    "QR 512": (jnp.linalg.qr, normal(512, 512)),
    "Cholesky 1024": (jnp.linalg.cholesky, definite(1024)),
    "solve 512x8": (jnp.linalg.solve, definite(512), normal(512, 8)),
    "256 solutions of 16": (jnp.linalg.solve, np.stack([definite(16)] * 256), normal(256, 16, 4)),
    "inverse 512": (jnp.linalg.inv, definite(512)),
    "eigenvalues 256": (jnp.linalg.eigh, definite(256)),
    "singular values 256": (jnp.linalg.svd, normal(256, 256)),
    "Newton, 50 steps": (lambda x: lax.fori_loop(0, 50, lambda i, x: x - (x * x - 2) / (2 * x), x), uniform(1000) + 1),
    "scan of 100 steps": (recurrent, normal(16, 64), normal(100, 16, 64), normal(128, 64)),
    "gradient of an MLP": (jax.grad(loss, (0, 1)), normal(64, 128), normal(128, 10), normal(64, 64), classes(64, 10)),
    "sum of a million exponentials": (lambda x: jnp.exp(x).sum(), uniform(10**6)),
    "mean squared error": (lambda x, y: jnp.mean((x - y) ** 2), normal(10**6), normal(10**6)),
    "maximum of 9 neighbours": (pooled(lax.max, -np.inf, (9,), (1,), "SAME"), normal(10**6)),
    "maximum of 9 integers": (pooled(lax.max, np.int32(-2**31), (9,), (1,), "SAME"), whole(0, 1000, 10**6)),
    "sum of 25 neighbours": (pooled(lax.add, 0.0, (25,), (1,)), normal(10**6)),
    "sum 11x11": (pooled(lax.add, 0.0, (11, 11), (1, 1), "SAME"), normal(512, 512)),
    "maximum 2x2 of 3 channels": (pooled(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1)), normal(8, 224, 224, 3)),
    "maximum 2x2 of 32 channels": (pooled(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1)), normal(8, 96, 96, 32)),
    "rolled rows": (lambda x: jnp.roll(x, 7, 1) + jnp.roll(x, -7, 1), normal(*SQUARE)),
    "rows summed into 100": (lambda x, i: jax.ops.segment_sum(x, i, 100), normal(100000, 16), whole(0, 100, 100000)),
    "rows of 64 summed into 50": (lambda x, i: jax.ops.segment_sum(x, i, 50), normal(20000, 64), whole(0, 50, 20000)),
    "products summed by row": (lambda x, y: (x * y).sum(1), normal(1024, 4096), normal(1024, 4096)),
    "convolve 100000 and 50": (jnp.convolve, normal(100000), normal(50)),
    "quotients of complex": (lambda x, y: x / y, (normal(10**5) + 1j * normal(10**5)).astype(np.complex64), (normal(10**5) + 1j * normal(10**5)).astype(np.complex64)),
    "roots of complex": (jnp.sqrt, (normal(10**5) + 1j * normal(10**5)).astype(np.complex64)),
    "cross products": (jnp.cross, normal(100000, 3), normal(100000, 3)),
    "three channels last": (lambda x: jnp.transpose(x, (0, 2, 3, 1)), normal(8, 3, 224, 224)),
    "channels backwards": (lambda x: x[..., ::-1], normal(1000, 1000, 3)),
    "first three of four": (lambda x: x[:, :3], normal(10**6, 4)),
    "a column of zeros": (lambda x: jnp.pad(x, ((0, 0), (0, 1))), normal(10**6, 3)),
    "zeros around a million": (lambda x: jnp.pad(x, (100, 200)), normal(10**6)),
    "products of quaternions": (quaternions, normal(300000, 4), normal(300000, 4)),
    "rotary embedding": (rotary, normal(4, 8, 256, 64), normal(256, 32), normal(256, 32)),
    "weights of 20000": (lambda x, y: x.T @ y, normal(20000, 32), normal(20000, 128)),
    "dot product of 10 million": (jnp.vdot, normal(10**7), normal(10**7)),
    "product along the middle": (lambda x, w: jnp.einsum("bchw,cd->bdhw", x, w), normal(8, 64, 28, 28), normal(64, 128)),
    "resize of three channels": (lambda x: jax.image.resize(x, (8, 112, 112, 3), "bilinear"), normal(8, 224, 224, 3)),
    "convolution of one image": (convolved(*NHWC), normal(1, 56, 56, 64), normal(3, 3, 64, 64)),
    "correlate 100000 and 64": (lambda x, w: jnp.correlate(x, w, mode="full"), normal(100000), normal(64)),
    "sums of eight neighbours": (convolved(), whole(0, 2, 1, 1, 500, 500), np.ones((1, 1, 3, 3), np.int32)),
    "in a table of ten": (jnp.isin, whole(-1000, 1000, 500, 500), np.arange(10, dtype=np.int32)),
    "first of three that holds": (lambda a: jnp.select([a < -1, a < 0, a < 1], [a, a * 2, a * 3], 0.0), normal(500, 500)),
    "greatest by index": (lambda a, i, v: a.at[i].max(v), normal(10**5), whole(0, 10**5, 10**5), normal(10**5)),
    "Bessel function": (jsp.special.i1e, normal(500, 500)),
    "rows of 100 over their norms": (lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), normal(10000, 100)),
}
