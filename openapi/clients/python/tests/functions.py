"""Functions with arguments, of many kinds, that run the same on the server as in the process.

Each row: name, function (jitted or not), arguments, keyword arguments. Expected is what JAX gives for the same call.
"""

import dataclasses
import functools
from collections import namedtuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

Point = namedtuple("Point", "x y")
R = np.random.default_rng(7)
F = R.standard_normal((4, 6)).astype(np.float32)
G = R.standard_normal((6, 5)).astype(np.float32)
V = R.standard_normal(6).astype(np.float32)
S = (R.standard_normal((5, 5)) @ np.eye(5)).astype(np.float32)
N = R.integers(-50, 50, (3, 4)).astype(np.int32)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights", "bias"], meta_fields=["name"])
@dataclasses.dataclass
class Layer:
    weights: object
    bias: object
    name: str = "dense"


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


log1pexp.defjvp(lambda p, t: (log1pexp(*p), t[0] * jax.nn.sigmoid(p[0])))

ROWS = []


def row(name, function, *args, **kwargs):
    ROWS.append((name, function, args, kwargs))


# Trees
row("scalar", lambda x: x * 2 + 1, 3)
row("float scalar", lambda x: jnp.sin(x), 0.5)
row("bool scalar", lambda b: ~b, True)
row("complex scalar", lambda z: z * 1j, 1 + 2j)
row("weak types", lambda x, y: (x + y, x * 2.5), np.float16(1.5), 3)
row("dict", lambda d: {"sum": d["a"] + d["b"], "none": None}, {"a": F, "b": 1.0})
row("nested", lambda t: [t[0], (t[1]["x"], None), []], [F, {"x": V}])
row("namedtuple", lambda p: Point(p.y, p.x * 2), Point(F, V))
row(
    "dataclass",
    lambda layer, x: Layer(layer.weights * 2, x @ layer.weights + layer.bias),
    Layer(G, np.zeros(5, np.float32)),
    F,
)
row("keywords", lambda x, *, scale, shift=1.0: x * scale + shift, F, scale=2.0)
row("no arguments", lambda: jnp.arange(5))
row("no results", lambda x: (), F)
row("an argument given back", lambda x, y: (y, x, x), F, N)
row("constant result", lambda x: (x, 7, jnp.ones(2)), V)
row("dropped arguments", lambda a, b, c: b + 1, F, V, N)
row("all dropped", lambda a, b: jnp.zeros(3), F, V)
row("dropped in trees", lambda d: d["b"], {"a": F, "b": V, "c": {"d": N}})
row("keep_unused", jax.jit(lambda a, b: b, keep_unused=True), F, V)
row("closed-over array", lambda x: x @ G, F)
row("large constant", lambda x: x + np.arange(3000, dtype=np.float32), np.float32(1))
# Static arguments
row("static number", jax.jit(lambda x, n: x**n, static_argnums=1), V, 3)
row("static in the middle", jax.jit(lambda x, n, y: x * n + y, static_argnums=(1,)), V, 3, 2.0)
row("static from behind", jax.jit(lambda x, mode: x if mode == "id" else -x, static_argnums=-1), V, "neg")
row("static name", jax.jit(lambda x, axis: jnp.sum(x, axis), static_argnames="axis"), F, axis=1)
row("static name by position", jax.jit(lambda x, axis: jnp.sum(x, axis), static_argnames="axis"), F, 0)
row("static function", jax.jit(lambda f, x: f(x), static_argnums=0), jnp.tanh, V)
row("partial", functools.partial(lambda a, b: a - b, 1.0), V)
# Control flow
row("scan", lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(6), x), F)
row("fori_loop", lambda x: lax.fori_loop(0, 10, lambda i, v: v * 0.9 + i, x), V)
row("while_loop", lambda x: lax.while_loop(lambda v: jnp.sum(v) < 100, lambda v: v * 2 + 1, x), np.abs(V))
row("cond", lambda p, x: lax.cond(p, lambda v: v + 1, lambda v: v - 1, x), True, V)
row("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), 2, V)
row("map", lambda x: lax.map(lambda v: v.sum() * v, x), F)
row("associative_scan", lambda x: lax.associative_scan(jnp.add, x, axis=0), F)
row("nested jit", lambda x: jax.jit(jnp.sin)(jax.jit(jnp.cos)(x)), V)
# Transformations
row("grad", jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), G, F)
row("value_and_grad", jax.value_and_grad(lambda p: jnp.sum(jax.nn.relu(F @ p["w"]) + p["b"])), {"w": G, "b": 0.5})
row("jacfwd", jax.jacfwd(lambda x: jnp.sin(x) * x), V)
row("hessian", jax.hessian(lambda x: jnp.sum(x**3)), V)
row("vmap", jax.vmap(lambda a, b: jnp.dot(a, b), in_axes=(0, None)), F, V)
row("vmap with out_axes", jax.vmap(lambda a: (a, a.sum()), out_axes=(1, 0)), F)
row("remat", jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))), V)
row("custom_vjp", jax.grad(lambda x: jnp.sum(clipped(x) ** 2)), V)
row("custom_jvp", jax.grad(lambda x: jnp.sum(log1pexp(x))), V)
row("linearize", lambda x, t: jax.jvp(jnp.sin, (x,), (t,)), V, V)
row("grad of an integer", jax.grad(lambda n, x: x * n, allow_int=True, argnums=(0, 1)), 3, 2.0)
# Random keys
row("key in", lambda k: jax.random.normal(k, (3, 2)), jax.random.key(1))
row("key out", lambda k: jax.random.split(k, 3), jax.random.key(2))
row(
    "keys in trees",
    lambda d: {"next": jax.random.fold_in(d["key"], 7), "u": jax.random.uniform(d["key"])},
    {"key": jax.random.key(3)},
)
row("key made", lambda seed: jax.random.key(seed), 42)
row("raw key", lambda k: jax.random.bits(k, (4,)), jax.random.PRNGKey(0))
row("many keys", jax.vmap(lambda k: jax.random.randint(k, (2,), 0, 100)), jax.random.split(jax.random.key(5), 4))
row("rbg key", lambda k: jax.random.key_data(k), jax.random.key(5, impl="rbg"))
row("permutation", lambda k, x: jax.random.permutation(k, x), jax.random.key(6), N)
# Types
for name in ("int8", "uint8", "int16", "uint16", "uint32", "float16"):
    row(name, lambda x: (x + x, x * x), np.arange(12).reshape(3, 4).astype(name))
for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"):
    values = np.array([0, 1, 2, 3, 5, 6, 7, 1]).astype(getattr(ml_dtypes, name))
    row(name, lambda x: (x, x.astype(jnp.float32) * 2, jnp.flip(x)), values)
row("negative int4", lambda x: (x, x.astype(jnp.int32)), np.array([-8, -1, 7, 0]).astype(ml_dtypes.int4))
row("to int4", lambda x: x.astype(jnp.int4), np.array([-8, -1, 7, 0], np.int32))
row("bfloat16 product", lambda x, y: x @ y, F.astype(ml_dtypes.bfloat16), G.astype(ml_dtypes.bfloat16))
row("bool", lambda x: (x > 0, ~(x > 0)), F)
row("complex", lambda z: (z * z, z.real, jnp.conj(z)), (F + 1j * F).astype(np.complex64))
row("float64 in", lambda x: x + 1, F.astype(np.float64))
row("int64 in", lambda x: x + 1, N.astype(np.int64))
row("zero size", lambda x: (x, x.sum(), jnp.concatenate([x, x])), np.zeros((0, 3), np.float32))
row("rank 0", lambda x: x.reshape(1, 1), np.float32(3))
row("not a number", lambda x: (x, x - x), np.array([np.nan, np.inf, -np.inf, -0.0], np.float32))
row("Fortran order", lambda x: x * 2, np.asfortranarray(F))
row("a view with strides", lambda x: x * 2, F[::2, ::-1])
row("read-only", lambda x: x + 1, np.broadcast_to(V, (3, 6)))
row("list of numbers", lambda x: jnp.stack(x), [1.0, 2.0, 3.0])
row("jax array", lambda x: x + 1, jnp.asarray(F))
# Computation
row("matmul", lambda a, b: a @ b, F, G)
row("einsum", lambda a, b: jnp.einsum("ij,jk->ki", a, b), F, G)
row("softmax", lambda x: jax.nn.softmax(x, -1), F)
row("sort", lambda x: (jnp.sort(x, -1), jnp.argsort(x, -1)), F)
row("top_k", lambda x: lax.top_k(x, 3), F)
row("cumsum", lambda x: jnp.cumsum(x, 1), F)
row("scatter", lambda x, i: x.at[i].add(1.0), V, np.array([0, 2, 2], np.int32))
row("gather", lambda x, i: x[i, 1:3], F, np.array([3, 0], np.int32))
row("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), F, 1)
row("convolution", lambda x, k: jnp.convolve(x, k), V, V[:3])
row("conv 2d", lambda x, k: lax.conv(x, k, (1, 1), "SAME"), F.reshape(1, 1, 4, 6), G.reshape(1, 1, 6, 5)[:, :, :3, :3])
row("fft", lambda x: jnp.fft.rfft(x), F)
row("cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(5)), S)
row("solve", lambda a, b: jnp.linalg.solve(a, b), S + 5 * np.eye(5, dtype=np.float32), V[:5])
row("eigh", lambda a: jnp.linalg.eigvalsh(a + a.T), S)
row("qr", lambda a: jnp.abs(jnp.linalg.qr(a)[1]), S)
row("erf", lambda x: jax.scipy.special.erf(x), F)
row("lgamma", lambda x: jax.scipy.special.gammaln(jnp.abs(x) + 1), F)
row("one_hot", lambda i: jax.nn.one_hot(i, 5), np.array([0, 4, 2]))
row("bit operations", lambda x: (x & 7, x << 2, x ^ -1), N)
row("donated", jax.jit(lambda x, y: x + y, donate_argnums=0), F.copy(), 1.0)
