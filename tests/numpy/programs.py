"""Programs of NumPy syntax with their arguments: the suite that tests/numpy/suite_test.py runs over HTTP and make_answers.py runs with JAX.

A case is (name, source, arguments, options). Where the source is one expression, `def f(x, y, ...): return ...` is written around it, with a parameter
for each argument. Arguments are JSON as a client sends it: lists and bare numbers have the types of JAX without x64. `twin` is the source that JAX
runs where the text uses an if, while or range(n) on arrays; `static` names static arguments; `exact` is false where only a tolerance can hold for
what is not a float; `refused` is the error code that a program gets by name."""

X = [[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]]
Y = [[0.5, 1.25, -0.75], [2.0, -3.5, 4.0]]
P = [[0.5, 1.0, 2.5], [0.25, 3.0, 1.75]]  # positive
U = [[0.1, -0.3, 0.9], [0.5, -0.75, 0.0]]  # within (-1, 1)
V = [1.0, -2.0, 3.5, 0.5]
W = [0.5, 4.0, -1.0, 2.0]
I = [[7, -3, 2], [0, 5, -8]]
J = [[2, 3, -4], [5, -2, 3]]
B = [[True, False, True], [False, False, True]]
S = [3, 1, 2, 1, 0]
N = ["NaN", 1.0, "Infinity", -2.0, "-Infinity", 0.0]
M = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]]  # symmetric, positive definite
A = [[0.0, 2.0, 1.0], [1.0, -1.0, 3.0], [4.0, 0.5, -2.0]]  # wants pivots
C = {"dtype": "complex64", "shape": [2, 2], "data": [[[1.0, 2.0], [0.5, -1.0]], [[-3.0, 0.0], [2.0, 2.5]]]}
H = {"dtype": "float16", "shape": [4], "data": [0.5, 1.25, -3.0, 100.0]}
BF = {"dtype": "bfloat16", "shape": [4], "data": [0.5, 1.25, -3.0, 100.0]}
U8 = {"dtype": "uint8", "shape": [4], "data": [1, 200, 55, 0]}
I8 = {"dtype": "int8", "shape": [4], "data": [1, -100, 55, 0]}
U32 = {"dtype": "uint32", "shape": [3], "data": [1, 4000000000, 7]}
T = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[-1.0, 0.5], [2.5, -3.0], [0.0, 7.0]]]
KEY = {"dtype": "uint32", "shape": [2], "data": [0, 42]}

CASES = []


def case(name, source, *arguments, **options):
    CASES.append((name, source, list(arguments), options))


def each(expressions, *arguments, **options):
    """A case for each expression of the text, a line each, all with the same arguments."""
    for expression in expressions.strip().splitlines():
        case(expression.strip(), expression.strip(), *arguments, **options)


# --- elementwise

each("""
jnp.exp(x)
jnp.expm1(x)
jnp.exp2(x)
jnp.cbrt(x)
jnp.square(x)
jnp.reciprocal(x)
jnp.sin(x)
jnp.cos(x)
jnp.tan(x)
jnp.sinh(x)
jnp.cosh(x)
jnp.tanh(x)
jnp.arctan(x)
jnp.arcsinh(x)
jnp.sinc(x)
jnp.deg2rad(x)
jnp.rad2deg(x)
jnp.abs(x)
jnp.absolute(x)
jnp.fabs(x)
jnp.negative(x)
jnp.positive(x)
jnp.sign(x)
jnp.floor(x)
jnp.ceil(x)
jnp.trunc(x)
jnp.rint(x)
jnp.round(x)
jnp.round(x * 1.23456, 2)
jnp.isnan(x)
jnp.signbit(x)
jnp.clip(x, -1, 1)
jnp.clip(x, min=0)
jnp.logical_not(x)
jnp.real(x)
jnp.imag(x)
jnp.conj(x)
jnp.conjugate(x)
jnp.angle(x)
jnp.copy(x)
lax.stop_gradient(x)
special.erf(x)
special.erfc(x)
special.expit(x)
-x
+x
abs(x)
x ** 2
x ** 3
x ** -2
2 ** x
x / 2
x // 2
x % 2
x - 1.5
1 - x
3 // x
x > 0
x == 0.25
(x > 0) & (x < 2)
~(x > 0) | (x == 3)
x.T
x.mT
x.shape
x.ndim + x.size
x.astype(jnp.int32)
x.astype('float16').astype(float)
x.astype(bool)
jnp.astype(x, jnp.int8)
jnp.float32(x) + jnp.int32(3)
-(x if True else 0) ** 2
""", X)
each("""
jnp.log(x)
jnp.log1p(x)
jnp.log2(x)
jnp.log10(x)
jnp.sqrt(x)
lax.rsqrt(x)
special.gammaln(x)
special.digamma(x)
jnp.power(x, 0.5)
x ** 1.7
jnp.arccosh(x + 1)
jnp.pow(x, 2)
jnp.float_power(x, 2)
special.xlogy(x - 0.5, x)
""", P)
each("""
jnp.arcsin(x)
jnp.arccos(x)
jnp.arctanh(x)
special.erfinv(x)
special.logit(abs(x) + 0.01)
""", U)
each("""
x + y
x - y
x * y
x / y
x // y
x % y
jnp.add(x, y)
jnp.subtract(x, y)
jnp.multiply(x, y)
jnp.divide(x, y)
jnp.true_divide(x, y)
jnp.floor_divide(x, y)
jnp.mod(x, y)
jnp.remainder(x, y)
jnp.fmod(x, y)
jnp.divmod(x, y)
divmod(x, y)
jnp.maximum(x, y)
jnp.minimum(x, y)
jnp.equal(x, y)
jnp.not_equal(x, y)
jnp.less(x, y)
jnp.less_equal(x, y)
jnp.greater(x, y)
jnp.greater_equal(x, y)
jnp.logical_and(x > 0, y)
jnp.logical_or(x, y > 0)
jnp.logical_xor(x > 0, y > 0)
""", X, Y)
each("""
jnp.logaddexp(x, y)
jnp.hypot(x, y)
jnp.arctan2(x, y)
jnp.fmax(x, y)
jnp.fmin(x, y)
jnp.heaviside(x, y)
jnp.isclose(x, y)
jnp.allclose(x, x)
lax.complex(x, y)
""", X, Y)
each("""
x + y
x - y
x * y
x / y
x // y
x % y
x & y
x | y
x ^ y
~x
-x
x ** 2
abs(x) ** (y & 3)
x << 2
x >> 1
jnp.left_shift(x, 1)
jnp.right_shift(x, 1)
jnp.bitwise_and(x, y)
jnp.bitwise_or(x, y)
jnp.bitwise_xor(x, y)
jnp.bitwise_not(x)
jnp.invert(x)
jnp.sum(x, axis=1)
jnp.mean(x)
jnp.sqrt(abs(x))
jnp.maximum(x, 2)
jnp.sign(x)
jnp.sort(x, axis=0)
jnp.argmax(x, axis=1)
x + 0.5
x * 2.0
x / 2
jnp.round(x)
jnp.floor(x)
jnp.power(abs(x), 3)
jnp.prod(x)
""", I, J)
each("""
jnp.isnan(x)
jnp.isfinite(x)
jnp.isinf(x)
jnp.isposinf(x)
jnp.isneginf(x)
jnp.nan_to_num(x)
jnp.sort(x)
jnp.argsort(x)
jnp.sort(x, descending=True)
jnp.argsort(x, descending=True)
jnp.argmax(x)
jnp.argmin(x)
jnp.max(x)
jnp.min(x)
jnp.nansum(x)
jnp.nanmax(x)
jnp.nanmin(x)
jnp.nanmean(jnp.where(jnp.isinf(x), 2.0, x))
jnp.sign(x)
jnp.maximum(x, 0.5)
jnp.fmax(x, 0.5)
jnp.median(x)
jnp.isclose(x, x, equal_nan=True)
""", N)
each("""
x * 2
x @ x
jnp.conj(x)
jnp.conjugate(x)
jnp.real(x)
jnp.imag(x)
x.real + x.imag
jnp.abs(x)
jnp.angle(x)
jnp.angle(x, deg=True)
jnp.exp(x)
x * (1 + 2j)
jnp.sum(x)
jnp.mean(x, axis=0)
jnp.var(x)
x == x.T
jnp.vdot(x, x)
jnp.linalg.norm(x)
jnp.sort(x)
""", C)

# --- promotion

for name, value in (("half", H), ("bfloat", BF), ("uint8", U8), ("int8", I8), ("uint32", U32), ("bool", B), ("int", I), ("float", X)):
    each("""
x + 1
x * 2.5
x + jnp.int8(1)
x + jnp.uint16(2)
x + jnp.float16(0.5)
x / 3
jnp.sum(x)
jnp.mean(x)
jnp.cumsum(x)
x > 0
x + (x > 0)
jnp.exp(x)
""", value)
case("weak scalars stay weak", "n + jnp.bfloat16(1)", 3)
case("weak float and int8", "def f(x, n): return x * n, x + 2, n * 2", I8, 3)
case("bare bool", "jnp.where(b, 1, 2.5)", True)
case("float16 sums in float32", "x.sum(), x.mean(), x.var(), x.std()", H)
case("result type", "def f(x, y): return (x + y).astype(jnp.result_type(x, y, jnp.float16))", I8, U8)
case("uint8 wraps", "x * 2 + x", U8)
case("dtypes compare", "def f(x): return x * 2 if x.dtype == jnp.float32 else x", X)
case("issubdtype", "def f(x): return x + 1 if jnp.issubdtype(x.dtype, jnp.floating) else x * 2", X)
case("finfo and iinfo", "def f(x): return x + jnp.finfo(x.dtype).eps, jnp.iinfo(jnp.int8).max", X)
case("dtype of", "x.astype(jnp.dtype('int16'))", X)

# --- reductions

each("""
jnp.sum(x)
jnp.sum(x, axis=0)
jnp.sum(x, axis=-1, keepdims=True)
jnp.sum(x, axis=(0, 1))
jnp.sum(x, where=x > 0)
jnp.sum(x, initial=10)
jnp.sum(x, dtype=jnp.int32)
x.sum(0)
x.sum(axis=1)
jnp.prod(x, axis=1)
x.prod()
jnp.mean(x)
jnp.mean(x, axis=1, keepdims=True)
jnp.mean(x, where=x > 0)
x.mean(axis=0)
jnp.var(x)
jnp.var(x, axis=1, ddof=1)
x.var(0)
jnp.std(x, axis=0)
x.std()
jnp.max(x)
jnp.max(x, axis=0)
jnp.max(x, axis=1, initial=2.0, where=x < 1)
jnp.amax(x, axis=1)
x.max(axis=-1, keepdims=True)
jnp.min(x)
jnp.amin(x, axis=0)
x.min(1)
jnp.argmax(x)
jnp.argmax(x, axis=0)
jnp.argmax(x, axis=1, keepdims=True)
jnp.argmin(x, axis=-1)
x.argmin()
x.argmax(0)
jnp.all(x > -5)
jnp.any(x > 2, axis=0)
(x > 0).all(axis=1)
(x > 0).any()
jnp.ptp(x, axis=0)
x.ptp()
jnp.cumsum(x)
jnp.cumsum(x, axis=1)
x.cumsum(0)
jnp.cumprod(x, axis=1)
x.cumprod()
lax.cumsum(x, axis=1, reverse=True)
lax.cummax(x, axis=1)
lax.cummin(x, axis=0)
jnp.median(x)
jnp.median(x, axis=0)
jnp.median(x, axis=1, keepdims=True)
jnp.quantile(x, 0.3)
jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1)
jnp.percentile(x, 40, axis=0)
jnp.count_nonzero(x > 0)
jnp.count_nonzero(x, axis=1)
jnp.nansum(x, axis=0)
jnp.nanmean(x)
jnp.nanmax(x, axis=1)
jnp.nanmin(x)
jnp.average(x)
jnp.average(x, axis=1, weights=jnp.array([1.0, 2.0, 3.0]))
special.logsumexp(x)
special.logsumexp(x, axis=1, keepdims=True)
nn.logsumexp(x, axis=0)
sum(x)
len(x)
""", X)

# --- shapes

each("""
jnp.reshape(x, (3, 2))
jnp.reshape(x, (-1,))
x.reshape(3, -1)
x.reshape((1, 6))
x.reshape(3, 2, order='F')
jnp.ravel(x)
x.ravel()
x.flatten()
jnp.transpose(x)
x.transpose(1, 0)
jnp.permute_dims(x, (1, 0))
jnp.matrix_transpose(x)
jnp.swapaxes(x, 0, 1)
x.swapaxes(0, -1)
jnp.expand_dims(x, 1)
jnp.expand_dims(x, (0, -1))
jnp.squeeze(x[None])
jnp.squeeze(x[None, :, None], axis=0)
x[None].squeeze(0)
jnp.broadcast_to(x, (2, 2, 3))
jnp.broadcast_arrays(x, x[0])
jnp.atleast_1d(x[0, 0])
jnp.atleast_2d(x[0])
jnp.atleast_3d(x)
jnp.flip(x)
jnp.flip(x, 1)
jnp.flipud(x)
jnp.fliplr(x)
jnp.rot90(x)
jnp.rot90(x, 2)
jnp.rot90(x, -1)
jnp.roll(x, 1)
jnp.roll(x, 1, axis=1)
jnp.roll(x, (1, -1), axis=(0, 1))
jnp.concatenate([x, x * 2])
jnp.concatenate((x, x[:, :1]), axis=1)
jnp.concatenate([x, x.astype(jnp.int32)], axis=None)
jnp.stack([x, x])
jnp.stack([x, x + 1], axis=-1)
jnp.vstack([x, x[0]])
jnp.hstack([x, x])
jnp.hstack([x[0], x[1]])
jnp.dstack([x, x])
jnp.column_stack([x[:, 0], x])
jnp.append(x, 7.0)
jnp.append(x, x, axis=0)
jnp.split(x, 3, axis=1)
jnp.split(x, [1, 2], axis=1)
jnp.array_split(x, 2, axis=1)
jnp.vsplit(x, 2)
jnp.hsplit(x, 3)
jnp.unstack(x)
jnp.repeat(x, 2)
jnp.repeat(x, 2, axis=1)
x.repeat(3, axis=0)
jnp.tile(x, 2)
jnp.tile(x, (2, 1, 2))
jnp.pad(x, 1)
jnp.pad(x, ((1, 0), (0, 2)), constant_values=5)
jnp.pad(x, 1, mode='edge')
jnp.pad(x, 1, mode='reflect')
jnp.pad(x, 2, mode='symmetric')
jnp.pad(x, 1, mode='wrap')
jnp.tril(x)
jnp.triu(x, 1)
jnp.tril(x, -1)
jnp.diag(x)
jnp.diag(x[0])
jnp.diag(x[0], 1)
jnp.diag(x[0], -2)
jnp.diagonal(x, offset=1)
x.diagonal()
jnp.trace(x)
x.trace()
jnp.shape(x)
jnp.ndim(x)
jnp.size(x)
""", X)
each("""
jnp.moveaxis(x, 0, -1)
jnp.moveaxis(x, (0, 1), (2, 0))
jnp.transpose(x, (2, 0, 1))
x.transpose()
x.mT
x @ x.mT
jnp.diagonal(x, axis1=1, axis2=2)
jnp.sum(x, axis=(0, 2))
x[..., 0]
x[:, 1]
x[1, ::-1, :1]
x[-1, -2:]
jnp.einsum('ijk->kji', x)
""", T)

# --- creation

each("""
jnp.zeros(x.shape) + jnp.ones((2, 3))
jnp.zeros((2,), jnp.int8)
jnp.empty((2, 0))
jnp.full((2, 2), 7)
jnp.full((2,), 1.5, dtype=jnp.float16)
jnp.zeros_like(x)
jnp.ones_like(x, dtype=jnp.int32)
jnp.empty_like(x).shape
jnp.full_like(x, 3)
jnp.array([1, 2, 3])
jnp.array([[1.5, 2], [3, 4]]) @ x
jnp.array([x[0, 0], 2.0])
jnp.asarray([True, False])
jnp.array(3, dtype=jnp.uint8)
jnp.arange(5)
jnp.arange(2, 11, 3)
jnp.arange(5, 0, -2)
jnp.arange(0.0, 1.0, 0.25)
jnp.arange(4, dtype=jnp.float16)
jnp.linspace(0, 1, 5)
jnp.linspace(2.0, 3.0, 4, endpoint=False)
jnp.linspace(x[0], x[1], 3)
jnp.linspace(0, 10, 5, dtype=jnp.int32)
jnp.linspace(0, 1, 5, retstep=True)
jnp.logspace(0, 2, 5)
jnp.eye(3)
jnp.eye(2, 4, k=1, dtype=jnp.int32)
jnp.identity(2)
jnp.tri(3, k=-1)
jnp.meshgrid(x[0], x[1])
jnp.meshgrid(x[0], x[:, 0], indexing='ij')
jnp.indices((2, 3))
np.pi * x + np.e
jnp.inf > x
jnp.where(x > 0, jnp.nan, x)
""", X)

# --- choosing and ordering

each("""
jnp.where(x > 0, x, 0)
jnp.where(x > y, x, y)
lax.select(x > y, x, y)
jnp.select([x > 1, x > 0], [x * 10, x], default=-1)
jnp.take(x, jnp.array([2, 0]), axis=1)
jnp.take(x, jnp.array([[0, 5], [1, 7]]))
x.take(jnp.array([1]), axis=0)
jnp.take(x, jnp.array([3, 9]), mode='clip')
jnp.take(x, jnp.array([-1, 9]), mode='wrap')
jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
jnp.take_along_axis(x, jnp.array([[0], [2]]), axis=1)
jnp.sort(x)
jnp.sort(x, axis=0)
jnp.sort(x, axis=None)
x.sort(axis=0)
jnp.argsort(x, axis=1)
x.argsort()
jnp.lexsort((x[0], y[0]))
jnp.diff(x)
jnp.diff(x, n=2, axis=1)
jnp.diff(x, axis=0)
jnp.isin(x, jnp.array([0.5, 3.0]))
jnp.isin(x, jnp.array([0.5, 3.0]), invert=True)
lax.top_k(x, 2)
x.round(1)
x.clip(0, 1)
x.copy()
x.conj()
x.dot(y.T)
x.item if False else x
""", X, Y)
each("""
jnp.searchsorted(jnp.sort(x), y)
jnp.searchsorted(jnp.sort(x), y, side='right')
jnp.digitize(x, jnp.array([-1.0, 0.0, 2.0]))
jnp.digitize(x, jnp.array([-1.0, 0.0, 2.0]), right=True)
jnp.interp(x, jnp.array([-2.0, 0.0, 1.0, 3.0]), jnp.array([5.0, 1.0, 2.0, -4.0]))
jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), jnp.array([5.0, 1.0, 2.0]), left=-9, right=9)
lax.dynamic_slice(x, (1,), (2,))
lax.dynamic_slice_in_dim(x, 2, 2)
lax.dynamic_index_in_dim(x, 1)
lax.dynamic_index_in_dim(x, -1, keepdims=False)
lax.dynamic_update_slice(x, y[:2], (1,))
lax.dynamic_update_slice_in_dim(x, y[:2], 3, axis=0)
""", V, W)
each("""
jnp.bincount(x, length=6)
jnp.bincount(x, weights=jnp.array([1.0, 2.0, 3.0, 4.0, 5.0]), length=4)
jnp.argsort(x)
jnp.sort(x)
jnp.cumsum(x)[x]
nn.one_hot(x, 4)
nn.one_hot(x, 4, axis=0, dtype=jnp.int32)
""", S)

# --- indexing

each("""
x[0]
x[-1]
x[0, 1]
x[:, 0]
x[1:]
x[:, ::-1]
x[::-1, ::2]
x[:, 1:2]
x[..., 1]
x[None, 0]
x[:, None]
x[0, ..., None]
x[5]
x[0:0]
x[jnp.array([1, 0, 1])]
x[jnp.array([1, 0]), jnp.array([2, -1])]
x[:, jnp.array([2, 0])]
x[jnp.array([[0], [1]]), jnp.array([0, 2])]
x[jnp.array([0, 5, -7])]
x[jnp.array([0, 1]), 1]
x[None, jnp.array([0, 1]), ::2]
x[jnp.argmax(x[:, 0])]
x[jnp.argmin(x[0]), 1]
x.at[0].set(9.0)
x.at[0, 1].add(5.0)
x.at[:, 1].multiply(2.0)
x.at[:, ::2].set(0)
x.at[::-1].set(jnp.arange(6.0).reshape(2, 3))
x.at[1, -1].min(-7.0)
x.at[0].max(1.0)
x.at[jnp.array([0, 0, 1])].add(1.0)
x.at[jnp.array([1, 0]), jnp.array([0, 2])].set(jnp.array([10.0, 20.0]))
x.at[:, jnp.array([2, 0])].set(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
x.at[jnp.array([7])].set(100.0)
x.at[5].set(100.0)
x.at[jnp.argmax(x[:, 0]), 0].set(-1.0)
x.at[0].divide(2.0)
x.at[0].power(2.0)
x.at[0].subtract(2.0)
x.at[0].mul(3.0)
x.at[0, 1].get()
x.at[0].apply(jnp.exp)
x.at[0].set(7).astype(jnp.int32).at[1].add(2.7)
x.at[None, 0].set(3.0)
x.at[1, 1:].add(jnp.array([1.0, 2.0]))
""", X)

# --- products

each("""
x @ y.T
jnp.matmul(x, y.T)
jnp.dot(x, y.T)
jnp.vdot(x, y)
jnp.inner(x, y)
jnp.outer(x, y)
jnp.tensordot(x, y, axes=2)
jnp.tensordot(x, y, axes=([1], [1]))
jnp.einsum('ij,kj->ik', x, y)
jnp.einsum('ij,ij', x, y)
jnp.einsum('ij->j', x)
jnp.einsum('ij,ij->i', x, y)
jnp.einsum('...j,j->...', x, y[0])
jnp.einsum('ij,kj,k->i', x, y, y[:, 0])
jnp.kron(x, y)
jnp.cross(x, y)
x[0] @ y[1]
x @ y[0]
x[:, 0] @ y
""", X, Y)
each("""
jnp.matmul(x, jnp.ones((2, 4)))
jnp.einsum('bij,bkj->bik', x, x)
jnp.einsum('bii->bi', x[:, :2])
jnp.matmul(x[:1], x.mT)
jnp.tensordot(x, x, axes=([0, 2], [0, 2]))
""", T)

# --- linalg

each("""
jnp.linalg.cholesky(x)
jnp.linalg.cholesky(x, upper=True)
jnp.linalg.inv(x)
jnp.linalg.det(x)
jnp.linalg.slogdet(x)
jnp.linalg.solve(x, jnp.array([1.0, 2.0, 3.0]))
jnp.linalg.solve(x, jnp.ones((3, 2)))
jnp.linalg.eigvalsh(x)
jnp.linalg.eigh(x)[0]
jnp.abs(jnp.linalg.eigh(x)[1])
jnp.linalg.svd(x, compute_uv=False)
jnp.linalg.norm(x)
jnp.linalg.norm(x, axis=1)
jnp.linalg.norm(x, ord=1)
jnp.linalg.norm(x, ord=jnp.inf)
jnp.linalg.norm(x[0], ord=3)
jnp.linalg.norm(x[0], ord=1, keepdims=True)
jnp.linalg.matrix_power(x, 3)
jnp.linalg.matrix_power(x, -2)
""", M)
each("""
jnp.linalg.inv(x)
jnp.linalg.det(x)
jnp.linalg.slogdet(x)
jnp.linalg.solve(x, jnp.array([1.0, 2.0, 3.0]))
jnp.linalg.inv(jnp.stack([x, 2 * x, x.T]))
jnp.linalg.det(jnp.stack([x, 2 * x]))
jnp.linalg.qr(x, mode='r')
jnp.linalg.qr(x)[0] @ jnp.linalg.qr(x)[1]
""", A)
case("svd puts together", "def f(x):\n    u, s, vt = jnp.linalg.svd(x, full_matrices=False)\n    return (u * s) @ vt", X)
case("svd of shapes", "def f(x):\n    u, s, vt = jnp.linalg.svd(x)\n    return abs(u), s, vt.shape", X)

# --- fft

each("""
jnp.fft.fft(x)
jnp.fft.ifft(x)
jnp.fft.rfft(x)
jnp.fft.irfft(jnp.fft.rfft(x), n=3)
jnp.fft.fft(x, n=5)
jnp.fft.fft(x, axis=0)
jnp.fft.rfft(x, n=2, norm='ortho')
jnp.fft.fft2(x)
jnp.fft.ifft2(x)
jnp.fft.rfft2(x)
jnp.fft.irfft2(jnp.fft.rfft2(x), s=(2, 3))
jnp.fft.fftn(x, norm='forward')
jnp.fft.ifftn(x)
jnp.fft.rfftn(x)
jnp.fft.irfftn(jnp.fft.rfftn(x))
jnp.fft.fftshift(x)
jnp.fft.ifftshift(x, axes=1)
jnp.fft.fftfreq(5, d=0.5)
jnp.fft.rfftfreq(6)
""", X)

# --- random

each("""
random.split(key)
random.split(key, 3)
random.split(key, (2, 2))
random.fold_in(key, 7)
random.key_data(random.wrap_key_data(key))
random.bits(key, (3,))
random.bits(key, (5,), jnp.uint8)
random.uniform(key)
random.uniform(key, (2, 3))
random.uniform(key, (4,), minval=-2, maxval=3)
random.uniform(key, (4,), jnp.float16)
random.uniform(key, (4,), jnp.bfloat16)
random.normal(key, (2, 3))
random.normal(key)
random.randint(key, (6,), 0, 10)
random.randint(key, (6,), -5, 3, jnp.int8)
random.randint(key, (6,), 0, 256, jnp.uint8)
random.bernoulli(key, 0.3, (6,))
random.bernoulli(key)
random.permutation(key, 7)
random.permutation(key, jnp.arange(6.0).reshape(3, 2))
random.permutation(key, jnp.arange(6.0))
random.choice(key, 5, (4,))
random.choice(key, jnp.array([1.5, 2.5, 3.5]), (4,))
random.categorical(key, jnp.array([0.1, 2.0, -1.0]), shape=(8,))
random.categorical(key, jnp.array([[0.1, 2.0, -1.0], [3.0, 0.0, 0.0]]))
random.gumbel(key, (4,))
random.exponential(key, (4,))
random.laplace(key, (4,))
random.truncated_normal(key, -1.0, 2.0, (4,))
""", KEY)
case("seeds", "def f(n):\n    return random.PRNGKey(0), random.PRNGKey(n), random.PRNGKey(123456789)", 17)
case("new keys", "def f(n):\n    k1, k2 = random.split(random.key(3))\n    return random.normal(k1, (3,)), random.uniform(k2, (2,))", 0)

# --- nn

each("""
nn.relu(x)
nn.relu6(x * 4)
nn.sigmoid(x)
nn.log_sigmoid(x)
nn.softplus(x)
nn.silu(x)
nn.swish(x)
nn.mish(x)
nn.soft_sign(x)
nn.tanh(x)
nn.hard_tanh(x)
nn.hard_sigmoid(x)
nn.leaky_relu(x)
nn.leaky_relu(x, 0.2)
nn.elu(x)
nn.celu(x, 0.5)
nn.selu(x)
nn.gelu(x)
nn.gelu(x, approximate=False)
nn.glu(x, axis=0)
nn.softmax(x)
nn.softmax(x, axis=0)
nn.log_softmax(x)
nn.standardize(x)
jax.nn.relu(x)
jax.nn.softmax(x, axis=(0, 1))
""", X)

# --- Python

case("helpers, closures and defaults", """
def scale(x, by=2.0):
    return x * by

def f(x):
    shift = x.mean()
    def centred(y, *, keep=1):
        return (y - shift) * keep
    return scale(centred(x)), scale(x, by=3), centred(x, keep=0)
""", X)
case("lambdas, tuples and unpacking", """
def f(x):
    g = lambda a, b=1: (a + b, a - b)
    (p, q), *rest = g(x), 1, 2
    first, *middle, last = [1, 2, 3, 4]
    return p * q, rest[0] + last, middle
""", X)
case("comprehensions", """
def f(x):
    rows = [x[i] * i for i in range(x.shape[0]) if i > 0]
    return jnp.stack(rows + [r + 1 for r in rows]), sum([i * j for i, j in zip([1, 2], (3, 4))])
""", X)
case("dicts", """
def f(x, params):
    out = {'w': x @ params['w'], 'b': params['b']}
    out['sum'] = out['w'] + params.get('b')
    for k, v in params.items():
        out['n_' + k] = v.sum()
    return out
""", X, {"w": [[1.0], [2.0], [3.0]], "b": [0.5]})
case("trees of results", "def f(x): return {'b': (x[0], [x[1], None]), 'a': 3}", X)
case("static loops", """
def f(x):
    total = 0
    for i in range(3):
        for j, s in enumerate('ab'):
            total += x[0, i] * (j + 1)
    i = 0
    while i < 3:
        i += 1
        if i == 2:
            continue
        total = total + i
        if total is None:
            break
    return total
""", X)
case("a long static loop", """
def f(x):
    s = 0
    for i in range(300):
        s = s + x * i
    return s, i
""", X)
case("a long loop that needs its index", """
def f(x):
    s = x * 0
    for i in range(100):
        s = s + jnp.zeros((i + 1,)).sum() + x
    return s
""", X)
case("a loop over an array", "def f(x):\n    s = 0.0\n    for row in x:\n        s = s + row ** 2\n    return s", X)
case("builtins", """
def f(x):
    n = int(3.7) + int(True)
    assert n == 4 and isinstance(n, int) and not isinstance(n, (float, str)), 'n'
    assert min(3, 1, 2) == 1 and max([4, 5]) == 5 and abs(-2) == 2 and pow(2, 3) == 8
    assert any([False, True]) and all((True, 1)) and sorted([3, 1, 2]) == [1, 2, 3] and list(reversed([1, 2])) == [2, 1]
    assert tuple(map(lambda v: v * 2, [1, 2])) == (2, 4) and round(2.5) == 2 and str(7) == '7' and dict(a=1)['a'] == 1
    assert bool([]) is False and float(2) == 2.0 and complex(1, 2).imag == 2.0 and 'a' in 'abc' and 3 not in (1, 2)
    assert math.sqrt(4.0) == 2.0 and math.floor(2.7) == 2 and math.ceil(2.1) == 3 and math.prod([2, 3]) == 6
    assert 1 < n <= 4 < 10 and -7 // 2 == -4 and -7 % 3 == 2 and 2 ** -1 == 0.5 and 7 // -2.0 == -4.0
    assert math.log(1.0) == 0 and math.exp(0.0) == 1 and math.sin(0.0) == 0 and math.cos(0.0) == 1 and math.log2(8.0) == 3
    return x * n
""", X)
case("partial and reduce", "def f(x):\n    g = partial(jnp.sum, axis=0)\n    return g(x), functools.reduce(lambda a, b: a * b, [x, x, 2])", X)
case("static arguments", "def f(x, n, mode='sum'):\n    if mode == 'sum':\n        return x.sum() * n\n    return x.reshape(n, -1)", X, static={"n": 3, "mode": "rows"})
case("static by position", "def f(x, n): return jnp.zeros((n,)) + x[0, 0]", X, static={"1": 4})
case("declared static", "@partial(jax.jit, static_argnames=('n',))\ndef f(x, n):\n    return jnp.tile(x, n)", X, 2)
case("keywords and defaults", "def f(x, scale=2, *, shift=0.5): return x * scale + shift", X, keywords={"shift": 4.0})
case("main is what runs", "def main(x): return helper(x) + 1\ndef helper(x): return x * 2", X)
case("imports", "import jax\nimport jax.numpy as jnp\nfrom jax import nn, random as r\nfrom jax.numpy import sin as s\nimport numpy as np\n\n@jax.jit\ndef f(x):\n    '''doc'''\n    return s(x) + nn.relu(x) + jax.numpy.cos(x) * np.pi + r.uniform(r.PRNGKey(0))", X)
case("global constants", "SCALE = 3.0\nSIZES = (2, 3)\ndef f(x): return x * SCALE + jnp.ones(SIZES)", X)
case("tree map", "def f(p, q): return jax.tree.map(lambda a, b: a - 0.1 * b, p, q), jax.tree.leaves(q)", {"a": [1.0, 2.0], "b": 3.0}, {"a": [4.0, 5.0], "b": 6.0})
case("augmented assignments", "def f(x):\n    x += 1\n    x *= 2\n    x -= 0.5\n    x /= 3\n    x **= 2\n    x %= 1.5\n    return x", X)
case("an mlp", """
def layer(p, x):
    return x @ p['w'] + p['b']

def f(params, x):
    h = jnp.tanh(layer(params['first'], x))
    logits = layer(params['second'], h)
    return nn.log_softmax(logits), jnp.argmax(logits, axis=-1)
""", {"first": {"w": [[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], "b": [0.1, -0.1]}, "second": {"w": [[1.0, 2.0, -1.0], [0.5, -1.5, 0.3]], "b": [0.0, 0.1, 0.2]}}, X)
case("attention", """
def f(q, k, v):
    d = q.shape[-1]
    s = jnp.einsum('bqd,bkd->bqk', q, k) / math.sqrt(d)
    mask = jnp.tril(jnp.ones(s.shape[-2:], bool))
    s = jnp.where(mask, s, -jnp.inf)
    return nn.softmax(s, axis=-1) @ v
""", T, T, T)
case("layer norm", "def f(x, g, b):\n    m = x.mean(-1, keepdims=True)\n    v = ((x - m) ** 2).mean(-1, keepdims=True)\n    return (x - m) / jnp.sqrt(v + 1e-5) * g + b", X, [1.0, 2.0, 0.5], [0.0, 0.1, 0.2])

# --- vmap

case("vmap", "def f(x, y): return jax.vmap(jnp.dot)(x, y)", X, Y)
case("vmap with in_axes", "def f(x, y): return vmap(lambda a, b: a * b.sum(), in_axes=(1, None))(x, y)", X, Y)
case("vmap over many rows", "def f(x): return vmap(lambda r, s: {'a': jnp.sort(r), 'b': r.sum() * s}, in_axes=(0, None))(x, 2.0)", [[float((i * 7 + j * 3) % 11) for j in range(3)] for i in range(20)])
case("vmap of keys", "def f(key): return vmap(lambda k: random.normal(k, (2,)))(random.split(key, 4))", KEY)
case("vmap of vmap", "def f(x, y): return vmap(lambda a: vmap(lambda b: (a - b) @ (a - b))(y))(x)", X, Y)

# --- jax.lax

case("cond", "def f(x, y): return lax.cond(x.sum() > y.sum(), lambda a, b: a - b, lambda a, b: b * 2, x, y)", X, Y)
case("cond of trees", "def f(x): return lax.cond(x[0, 0] > 10, lambda: {'a': x, 'b': 1}, lambda: {'a': x * 2, 'b': 5})", X)
case("switch", "def f(i, x): return lax.switch(i, [lambda v: v, lambda v: v * 2, lambda v: v - 1], x)", 5, X)
case("while_loop", "def f(x): return lax.while_loop(lambda c: c[1] < 100, lambda c: (c[0] + 1, c[1] * 1.5), (0, x[0, 0]))", X)
case("fori_loop", "def f(x): return lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x)", X)
case("fori_loop weak", "def f(x): return lax.fori_loop(0, 5, lambda i, c: c + x[0, 0], 0.0)", X)
case("scan", "def f(x):\n    def step(c, r):\n        c = c * 0.5 + r\n        return c, c.sum()\n    return lax.scan(step, jnp.zeros(3), x)", X)
case("scan reversed", "def f(x): return lax.scan(lambda c, r: (c + r, c), 0.0, x, reverse=True)", V)
case("scan by length", "def f(x): return lax.scan(lambda c, _: (c * 2, c), x, None, length=4)", 1.5)
case("map", "def f(x): return lax.map(lambda r: r.sum() ** 2, x)", X)

# --- control flow on arrays

case("if assigns", """
def f(x):
    y = 0.0
    if x > 0:
        y = x * 2
        z = 1
    else:
        y = -x
        z = 2
    return y, z
""", -3.5, twin="def f(x): return lax.cond(x > 0, lambda: (x * 2, 1), lambda: (-x, 2))")
case("if returns", """
def f(x):
    if x > 10:
        return x
    elif x > 0:
        return x * 2
    x = x - 1
    return -x
""", -3.5, twin="def f(x): return lax.cond(x > 10, lambda: x, lambda: lax.cond(x > 0, lambda: x * 2, lambda: -(x - 1)))")
case("conditional expression", "def f(x): return x if x > 0 else -x", -2.5, twin="def f(x): return lax.cond(x > 0, lambda: x, lambda: -x)")
case("if joins types", "def f(x, n):\n    if n > 2:\n        y = 1\n    else:\n        y = x.sum()\n    return y", X, 3, twin="def f(x, n): return lax.cond(n > 2, lambda: 1.0 * jnp.float32(1), lambda: x.sum())")
case("if in a loop", """
def f(x, n):
    for i in range(n):
        if i % 2 == 0:
            x = x + i
        else:
            x = x * 0.5
    return x
""", X, 7, twin="def f(x, n): return lax.fori_loop(0, n, lambda i, c: lax.cond(i % 2 == 0, lambda: c + i, lambda: c * 0.5), x)")
case("while on an array", """
def f(x):
    n = 0
    while x < 100:
        x = x * 1.5
        n += 1
    return x, n
""", 3.0, twin="def f(x): return lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 1.5, c[1] + 1), (x, 0))")
case("while that begins static", """
def f(a):
    x, err = a, 1.0
    while err > 1e-4:
        new = 0.5 * (x + a / x)
        err = jnp.abs(new - x)
        x = new
    return x
""", 7.0, twin="def f(a): return lax.while_loop(lambda c: c[1] > 1e-4, lambda c: (0.5 * (c[0] + a / c[0]), jnp.abs(0.5 * (c[0] + a / c[0]) - c[0])), (0.5 * (a + a / a), jnp.abs(0.5 * (a + a / a) - a)))[0]")
case("range of an array", "def f(x, n):\n    for i in range(n):\n        x = x * 2\n    return x", X, 4, twin="def f(x, n): return lax.fori_loop(0, n, lambda i, c: c * 2, x)")
case("range with a start and a step", "def f(x, n):\n    s = 0\n    for i in range(n, 0, -2):\n        s = s + i\n    return s + x", X, 9, twin="def f(x, n): return 25 + x")
case("weak types in loops", "def f(x, n):\n    s = 0\n    for i in range(n):\n        s = s + x[0, 0] * i\n    return s", X, 4, twin="def f(x, n): return lax.fori_loop(0, n, lambda i, c: c + x[0, 0] * i, 0.0)")
case("fibonacci", "def f(n):\n    a, b = 0, 1\n    for i in range(n):\n        a, b = b, a + b\n    return a", 10, twin="def f(n): return lax.fori_loop(0, n, lambda i, c: (c[1], c[0] + c[1]), (0, 1))[0]")
case("collatz", "def f(n):\n    steps = 0\n    while n != 1:\n        if n % 2 == 0:\n            n = n // 2\n        else:\n            n = 3 * n + 1\n        steps += 1\n    return steps", 27, twin="def f(n): return lax.while_loop(lambda c: c[0] != 1, lambda c: (lax.cond(c[0] % 2 == 0, lambda: c[0] // 2, lambda: 3 * c[0] + 1), c[1] + 1), (n, 0))[1]")
case("newton in a helper", "def root(a):\n    x = a\n    for i in range(20):\n        x = 0.5 * (x + a / x)\n    return x\ndef f(x): return root(x)", P)
case("logs", "def f(x):\n    log('sum {}', x.sum())\n    jax.debug.print('x {}', x, ordered=True)\n    return x * 2", X, twin="def f(x): return x * 2", logs=["sum {}", "x {}"])
case("logs in a loop", "def f(x, n):\n    for i in range(n):\n        x = x * 2\n        log('step {} {}', i, x)\n        if i > 1:\n            log('late {}', i)\n    return x", 1.5, 3, twin="def f(x, n): return lax.fori_loop(0, n, lambda i, c: c * 2, x)", logs=["step {} {}", "step {} {}", "step {} {}", "late {}"])

# --- what is refused, with words that the answer has

case("unknown name", "def f(x): return jnp.summ(x)", X, refused="invalid_program", says="did you mean 'sum'")
case("unknown variable", "def f(x):\n    value = x\n    return valeu", X, refused="invalid_program", says="did you mean 'value'")
case("syntax", "def f(x)\n    return x", X, refused="program_syntax", says="expected ':'")
case("classes", "class A: pass", X, refused="unsupported_type", says="'class'")
case("f-strings", "def f(x, i):\n    p = {'w0': x, 'w1': x * 2}\n    names = [f'w{k}' for k in range(2)]\n    return p[f'w{1}'], p[names[0]], len(f'{{{names[1]}}}' 'a' f'{True}')", X, 0)
case("slices as values", "def f(x):\n    s = slice(1, None)\n    return x[s], x[slice(1)], x[:, slice(2, 0, -1)]", X)
case("f-strings in log", """
def f(x):
    for i in range(2):
        log(f"step {i}: {x.sum():.3f} of {'all'}, {{}} {x[0, 1]}")
    jax.debug.print(f'{x.shape[0]} rows')
    return x
""", X, twin="def f(x): return x", logs=["step 0: {:.3f} of all, {} {}", "step 1: {:.3f} of all, {} {}", "2 rows"])
case("f-strings of arrays", "def f(x): return f'{x}'", X, refused="invalid_program", says="log(f")
case("f-strings with a conversion", "def f(x): return f'{x!r}'", X, refused="unsupported_type", says="'!r'")
case("f-strings that do not end", "def f(x): return f'{x'", X, refused="program_syntax", says="not closed")
case("f-strings with a wrong field", "def f(x): return f'{x +}'", X, refused="program_syntax", says="line 1, column 24")
case("recursion", "def f(x): return f(x)", X, refused="invalid_program", says="recursion")
case("and on arrays", "def f(x): return x > 0 and x < 1", X, refused="invalid_program", says="jnp.logical_and")
case("print", "def f(x):\n    print(x)\n    return x", X, refused="invalid_program", says="log(")
case("masks", "def f(x): return x[x > 0]", X, refused="invalid_program", says="jnp.where")
case("unique", "def f(x): return jnp.unique(x)", X, refused="invalid_program", says="unique needs size")
case("in place", "def f(x):\n    x[0] = 1\n    return x", X, refused="invalid_program", says="x.at[index].set")
case("shapes differ", "def f(x, y): return x + y", X, [1.0, 2.0], refused="invalid_program", says="cannot be broadcast")
case("one branch only", "def f(x):\n    if x > 0:\n        y = 1.0\n    return y", 1.0, refused="invalid_program", says="'y' has a value in one branch")
case("branches differ", "def f(x):\n    if x > 0:\n        y = jnp.zeros(2)\n    else:\n        y = jnp.zeros(3)\n    return y", 1.0, refused="invalid_program", says="different types")
case("a loop changes a shape", "def f(x, n):\n    for i in range(n):\n        x = jnp.concatenate([x, x])\n    return x", [1.0], 3, refused="invalid_program", says="changes the shape of 'x'")
case("power of ints", "def f(x): return 10 ** 10 ** 10", X, refused="invalid_program", says="63 bits")
case("negative power", "def f(x): return x ** -1", I, refused="invalid_program", says="negative powers")
case("int of an array", "def f(x): return jnp.zeros(int(x.sum()))", X, refused="invalid_program", says="astype")
case("item", "def f(x): return x.item() + x.tolist()", X, refused="invalid_program", says="item()")
case("tolist", "def f(x): return x.tolist()", X, refused="invalid_program", says="tolist()")
case("too few arguments", "def f(x, y): return x", X, refused="invalid_program", says="needs an argument 'y'")
case("wrong keyword", "def f(x): return jnp.sum(x, axes=0)", X, refused="invalid_program", says="did you mean 'axis'")
case("an endless static loop", "def f(x):\n    while True:\n        x = x + 1\n    return x", X, refused="invalid_program", says="has run")
case("no mesh", "def f(x): return with_sharding_constraint(x, P('x', None))", X, refused="invalid_spec", says="needs a mesh")
case("assert", "def f(x):\n    assert x.ndim == 3, 'wants three'\n    return x", X, refused="invalid_program", says="wants three")
for function in ("pmap", "shard_map", "pure_callback"):
    case(function, f"def f(x): return jax.{function}(jnp.sum)(x)", X, refused="unsupported_op", says="not supported yet")
case("checkpoint", "def f(x): return jax.checkpoint(jnp.sin)(x)", X)

# --- derivatives

each("""
jax.grad(lambda v: jnp.sum(v ** 2))(x)
grad(lambda v: jnp.sum(jnp.sin(v) * y))(x)
jax.value_and_grad(lambda v: jnp.mean(jnp.tanh(v) * y))(x)
jax.grad(lambda v, w: jnp.sum(v @ w.T), argnums=(0, 1))(x, y)
jax.grad(lambda v: jnp.sum(nn.softmax(v) * y))(x)
jax.grad(lambda v: special.logsumexp(v * y))(x)
jax.grad(lambda v: jnp.sum(nn.relu(v - 0.5)))(x)
jax.grad(lambda v: jnp.sum(nn.gelu(v)) + jnp.var(v))(x)
jax.grad(lambda v: jnp.sum(v * lax.stop_gradient(v)))(x)
jax.grad(lambda v: jnp.sum(jnp.where(v > 0, v, v * y)))(x)
jax.grad(lambda v: v[0, 1] * v[1, jnp.array([0, 2])].sum())(x)
jax.grad(lambda v: jnp.linalg.norm(v) + jnp.max(v))(x)
jax.grad(lambda v: (v.sum() ** 2, v.mean()), has_aux=True)(x)
jax.grad(lambda v: jax.grad(lambda w: jnp.sum(w ** 3))(v).sum())(x)
""", X, Y)
case("a training step", """
def loss(params, x, y):
    h = nn.relu(x @ params['w'] + params['b'])
    return jnp.mean((h.sum(axis=1) - y) ** 2)

def f(params, x, y):
    value, slopes = value_and_grad(loss)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
""", {"w": [[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], "b": [0.1, -0.1]}, X, [1.0, 2.0])
case("a training loop", """
def f(w, x, y):
    for i in range(5):
        w = w - 0.05 * grad(lambda p: jnp.mean((x @ p - y) ** 2))(w)
    return w
""", [0.5, -0.5, 1.0], X, [1.0, -1.0])
case("a gradient through a loop", "def f(x): return grad(lambda v: lax.fori_loop(0, 4, lambda i, c: c * v + jnp.sin(c), 1.0))(x)", 0.7)
case("gradients of integers", "def f(x): return grad(jnp.sum)(x)", I, refused="invalid_program", says="grad takes floats")
case("gradients of arrays", "def f(x): return grad(jnp.sin)(x)", X, refused="invalid_program", says="scalar")

each("""
jax.jacrev(lambda v: jnp.sin(v) @ y.T)(x)
jax.jacfwd(lambda v: jnp.sin(v) @ y.T)(x)
jax.jacobian(jnp.tanh)(x[0])
jax.jacfwd(lambda v: v[0] * v)(x)
jax.jacrev(lambda v: jnp.cumsum(v ** 2))(x[1])
jax.jacfwd(lambda v: jnp.sort(v * y[0]))(x[1])
jax.jacrev(lambda v, w: {'a': v * w, 'b': (v @ w, v.sum())}, argnums=(0, 1))(x[0], y[0])
jax.jacfwd(lambda v, w: {'a': v * w, 'b': (v @ w, v.sum())}, argnums=(0, 1))(x[0], y[0])
jax.jacrev(lambda p: p['w'] * p['b'])({'w': x[0], 'b': 2.0})
jax.jacrev(lambda v: (v ** 2, v.mean()), has_aux=True)(x)
jax.hessian(lambda v: jnp.sum(jnp.tanh(v) ** 2 * y))(x)
jax.hessian(lambda v: nn.logsumexp(v))(x[0])
jax.hessian(lambda v, w: v @ v * w.sum(), argnums=(0, 1))(x[0], y[0])
jax.vjp(jnp.dot, x[0], y[0])[1](2.0)
jax.vjp(lambda v: (v.sum(axis=0), jnp.exp(v)), x)[1]((y[0], y))
jax.vjp(lambda v: (jnp.sin(v), v.mean()), x, has_aux=True)[2]
jax.jvp(jnp.sin, (x,), (y,))
jax.jvp(lambda v, w: (v @ w.T, jnp.linalg.norm(v)), (x, y), (y, x))
jax.jvp(lambda v: nn.softmax(v, axis=-1), (x,), (y,))
jax.jvp(lambda v: (v * 2, v.sum()), (x,), (y,), has_aux=True)
jax.jvp(jax.grad(lambda v: jnp.sum(jnp.cos(v) * y)), (x,), (y,))[1]
jax.linearize(jnp.tanh, x)[1](y)
jax.vmap(jax.grad(lambda v: jnp.sum(v ** 3)))(x)
jax.vmap(jax.value_and_grad(lambda v, w: jnp.sum(jnp.sin(v) * w)), in_axes=(0, None))(x, y[0])
jax.grad(lambda v: jax.vmap(lambda r: jnp.sum(r) ** 2)(v).sum())(x)
jax.vmap(jax.jacrev(jnp.sin))(x)
""", X, Y)
case("a Newton step", """
def f(x):
    loss = lambda v: jnp.sum((v ** 2 - jnp.array([1.0, 2.0, 3.0])) ** 2) + v[0] * v[1]
    return x - jnp.linalg.solve(jax.hessian(loss)(x) + jnp.eye(3), jax.grad(loss)(x))
""", [1.0, 1.5, 2.0])
case("a jvp through a loop", "def f(x, y): return jax.jvp(lambda v: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * v, v), (x,), (y,))", 0.7, 0.5)
case("a vjp that is called twice", """
def f(x, y):
    out, back = jax.vjp(lambda v, w: jnp.tanh(v @ w.T), x, y)
    return out, back(jnp.ones_like(out)), back(out)
""", X, Y)
case("cotangents of another type", "def f(x): return jax.vjp(jnp.sin, x)[1](jnp.ones(3, jnp.int32))", V[:3], refused="invalid_program", says="cotangents are of the types")
case("cotangents of another structure", "def f(x): return jax.vjp(jnp.sin, x)[1]((x, x))", V, refused="invalid_program", says="structure")
case("tangents of another shape", "def f(x): return jax.jvp(jnp.sin, (x,), (x[0],))", V, refused="invalid_program", says="tangents are of the types")
case("a Jacobian of integers", "def f(x): return jax.jacrev(lambda v: v.astype(jnp.int32))(x)", V, refused="invalid_program", says="gives floats")
case("a Jacobian by integers", "def f(x): return jax.jacfwd(lambda v: v * 1.5)(x)", I, refused="invalid_program", says="takes floats")

# --- vmap by rewriting: every op with a rule, over batched and shared operands

ROWS = [[float((i * 7 + j * 3) % 11) - 4.5 for j in range(4)] for i in range(12)]
SHIFTS = [0, 2, 1, 3, -1, 5, 0, 1, 2, 3, 0, 1]
each("""
vmap(lambda r, s: lax.dynamic_slice(r, (s,), (2,)))(x, y)
vmap(lambda r, s: lax.dynamic_slice(x, (s, s), (2, 3)))(x, y)
vmap(lambda r, s: lax.dynamic_update_slice(r, jnp.zeros(2), (s,)))(x, y)
vmap(lambda r, s: lax.dynamic_update_slice(r, jnp.zeros(2), (1,)))(x, y)
vmap(lambda r, s: lax.dynamic_slice(r, (1,), (2,)) + s)(x, y)
vmap(lambda r, s: r[s])(x, y)
vmap(lambda r, s: x[s, 1:3])(x, y)
vmap(lambda r: r[jnp.array([2, 0])])(x)
vmap(lambda r, s: x[:, s])(x, y)
vmap(lambda r, s: r.at[s].set(9.0))(x, y)
vmap(lambda r, s: r.at[jnp.array([0, 2])].add(s))(x, y)
vmap(lambda r, s: jnp.zeros(4).at[s].add(r[1]))(x, y)
vmap(lambda r, s: jnp.where(s > 1, r, -r))(x, y)
vmap(lambda r, s: jnp.where(r > 0, s, 0))(x, y)
vmap(lambda r: jnp.clip(r, r[0], 2.0))(x)
vmap(lambda r: jnp.concatenate([r, jnp.ones(2), r[::-1]]))(x)
vmap(lambda r: jnp.pad(r, (1, 2), constant_values=3))(x)
vmap(lambda r: jnp.stack([r, r * 2]).T.reshape(2, 4))(x)
vmap(lambda r: (jnp.sort(r), jnp.argsort(r), jnp.argmax(r), lax.top_k(r, 2)))(x)
vmap(lambda r: (jnp.cumsum(r), jnp.cumprod(r), lax.cummax(r)))(x)
vmap(lambda r: jnp.median(r) + jnp.prod(r) + jnp.ptp(r))(x)
vmap(lambda r: r @ x.T)(x)
vmap(lambda r: x @ r)(x)
vmap(lambda r: jnp.outer(r, r) @ r)(x)
vmap(lambda r: jnp.einsum('ij,j->i', x, r))(x)
vmap(lambda a, b: jnp.einsum('bi,bj->bij', a, b), in_axes=(None, 0))(x[:3], x.reshape(4, 3, 4))
vmap(lambda r: jnp.fft.fft(r))(x)
vmap(lambda r: jnp.linalg.cholesky(jnp.outer(r, r) + 3 * jnp.eye(4)))(x)
vmap(lambda r: jnp.linalg.solve(jnp.outer(r, r) + 3 * jnp.eye(4), r))(x)
vmap(lambda r: jnp.linalg.eigvalsh(jnp.outer(r, r)))(x)
vmap(lambda r: r.sum(), in_axes=1)(x)
vmap(lambda r: r * 2, in_axes=1, out_axes=1)(x)
vmap(lambda r: (r, r.sum()), out_axes=(-1, 0))(x)
vmap(lambda r: {'a': r, 'b': r[0]}, out_axes={'a': 1, 'b': 0})(x)
vmap(lambda r: jnp.float32(1.0))(x)
vmap(lambda r, k: r * k)(x, k=y)
vmap(lambda r: vmap(lambda a, b: a * b, in_axes=(0, None))(r, r[0]))(x)
vmap(lambda p, s: p['w'] * s + p['b'], in_axes=({'w': 0, 'b': None}, 0))({'w': x, 'b': 1.5}, y)
vmap(lambda s: jnp.arange(3) * s)(y)
vmap(lambda: jnp.arange(3), in_axes=(), axis_size=2)()
vmap(lambda r: r.astype(jnp.int32).view(jnp.uint32) if False else lax.bitcast_convert_type(r, jnp.int32))(x)
vmap(lambda r, s: lax.cond(s > 1, lambda v: v * 2, lambda v: v - 1, r))(x, y)
vmap(lambda r, s: lax.cond(x.sum() > 1, lambda v: v * s, lambda v: v, r))(x, y)
vmap(lambda r, s: lax.switch(s, [lambda v: v, lambda v: v * 2, lambda v: -v], r))(x, y)
vmap(lambda r, s: lax.fori_loop(0, s, lambda i, c: c + r[i % 4], 0.0))(x, y)
vmap(lambda r: lax.fori_loop(0, 3, lambda i, c: c * r[i], 1.0))(x)
vmap(lambda r: lax.while_loop(lambda c: c.sum() < 20, lambda c: c + jnp.abs(r) + 1, r))(x)
vmap(lambda r: lax.scan(lambda c, v: (c + v, c * v), 0.0, r))(x)
vmap(lambda r: vmap(lambda v: lax.while_loop(lambda c: c < 9, lambda c: c + 2.5, v))(r))(x)
""", ROWS, SHIFTS)
case("vmap of a function that is a loop over rows", "def f(x): return vmap(lambda r: jnp.convolve(r, jnp.array([1.0, 2.0])))(x)", ROWS)
case("vmap over no rows", "def f(x): return vmap(lambda r: r * 2)(x[:0])", X)
case("vmap that logs", "def f(x):\n    def g(r):\n        log('row {}', r)\n        return r * 2\n    return vmap(g)(x)", [1.0, 2.0], twin="def f(x): return x * 2", logs=["row {}"] * 2)
case("vmap with other sizes", "def f(x, y): return vmap(lambda a, b: a)(x, y)", X, V, refused="invalid_program", says="different sizes")
case("vmap with another axis_size", "def f(x): return vmap(lambda a: a, axis_size=5)(x)", X, refused="invalid_program", says="axis_size is 5")
case("vmap with other out_axes", "def f(x): return vmap(lambda a: a, out_axes=(0, 1))(x)", X, refused="invalid_program", says="out_axes")

# --- jumps out of loops on arrays

case("break in a while on arrays", """
def f(x):
    n = 0
    while jnp.sum(x) < 100:
        x = x * 1.5
        if jnp.max(x) > 10:
            break
        n = n + 1
    return x, n
""", P, twin="""
def f(x):
    def body(c):
        x, n, done = c
        x = x * 1.5
        done = jnp.max(x) > 10
        return x, jnp.where(done, n, n + 1), done
    return lax.while_loop(lambda c: (jnp.sum(c[0]) < 100) & ~c[2], body, (x, 0, False))[:2]
""")
case("while True with a break", """
def f(x):
    steps = 0
    while True:
        x = x / 2
        steps = steps + 1
        if jnp.abs(x).max() < 0.1:
            break
    return x, steps
""", X, twin="""
def f(x):
    def body(c):
        return c[0] / 2, c[1] + 1
    return lax.while_loop(lambda c: jnp.abs(c[0]).max() >= 0.1, body, (x / 2, 1))
""")
case("continue in a counted loop", """
def f(x, n):
    total = 0.0
    for i in range(n):
        if i % 3 == 1:
            continue
        total = total + x[i % 4]
        if total > 20:
            break
        total = total + 1
    return total
""", V, 12, twin="""
def f(x, n):
    def body(c):
        i, total, done = c
        skip = i % 3 == 1
        more = total + x[i % 4]
        done = ~skip & (more > 20)
        return i + 1, jnp.where(skip, total, jnp.where(done, more, more + 1)), done
    return lax.while_loop(lambda c: (c[0] < n) & ~c[2], body, (0, 0.0, False))[1]
""")
case("break below an if in an unrolled loop", """
def f(x):
    best = x[0]
    for i in range(3):
        if x[i] < 0:
            best = x[i]
            break
        else:
            best = best + 1
        best = best * 2
    return best
""", V, twin="""
def f(x):
    def body(c):
        i, best, done = c
        negative = x[i] < 0
        return i + 1, jnp.where(negative, x[i], (best + 1) * 2), negative
    return lax.while_loop(lambda c: (c[0] < 3) & ~c[2], body, (0, x[0], False))[1]
""")
case("break in a long static loop", """
def f(x):
    s = 0.0
    for i in range(500):
        s = s + x.sum() * i
        if s > 1000:
            break
    return s
""", X, twin="""
def f(x):
    return lax.while_loop(lambda c: (c[0] < 500) & (c[1] <= 1000), lambda c: (c[0] + 1, c[1] + x.sum() * c[0]), (0, 0.0))[1]
""")
case("nested loops with breaks of their own", """
def f(x):
    count = 0
    while True:
        count = count + 1
        for j in range(4):
            if j == 2:
                continue
            x = x + 0.5
            if x.min() > 3:
                break
        if x.max() > 6:
            break
    return x, count
""", P, twin="""
def f(x):
    def inner(c):
        j, x, done = c
        skip = j == 2
        more = x + 0.5
        return j + 1, jnp.where(skip, x, more), ~skip & (more.min() > 3)
    def outer(c):
        x, count = c
        x = lax.while_loop(lambda c: (c[0] < 4) & ~c[2], inner, (0, x, False))[1]
        return x, count + 1
    return lax.while_loop(lambda c: c[0].max() <= 6, outer, outer((x, 0)))
""")
case("static breaks stay static", """
def f(x):
    for i in range(100):
        if i == 3:
            break
        x = x + i
    return x, i
""", X)
case("return inside of a loop on arrays", """
def f(x):
    while x.sum() < 100:
        x = x * 2
        if x.max() > 10:
            return x
    return x
""", P, refused="invalid_program", says="'return' inside of a loop")

# --- functions that are written in terms of others

each("""
jnp.trapezoid(x, axis=0)
jnp.trapezoid(x, dx=0.5)
jnp.trapezoid(x[0], y[1])
jnp.cov(x)
jnp.cov(x, y, ddof=0)
jnp.cov(x, rowvar=False, bias=True)
jnp.corrcoef(x)
jnp.corrcoef(x[0], y[0])
jnp.histogram(x, bins=4)
jnp.histogram(x, bins=3, range=(-1.0, 2.0))
jnp.ediff1d(x)
jnp.cumulative_sum(x, axis=1)
jnp.cumulative_sum(x[0], include_initial=True)
jnp.cumulative_prod(x, axis=0, include_initial=True)
jnp.convolve(x[0], y.ravel())
jnp.convolve(x.ravel(), y[0], mode='same')
jnp.convolve(x.ravel(), y[0], 'valid')
jnp.correlate(x.ravel(), y[0])
jnp.correlate(y[0], x.ravel(), mode='full')
jnp.gradient(x.ravel())
jnp.gradient(x.ravel(), 0.5)
jnp.gradient(jnp.concatenate([x, y]))
jnp.gradient(jnp.concatenate([x, y]), 2.0, axis=0)
jnp.unwrap(x.ravel() * 3)
jnp.unwrap(x * 5, axis=1)
jnp.polyval(x[0], y)
jnp.vander(x[0])
jnp.vander(x[0], 4, increasing=True)
jnp.copysign(x, y)
jnp.logaddexp2(x, y)
jnp.modf(x * 1.3)
jnp.ldexp(x, jnp.array([1, 2, -1]))
jnp.isreal(x)
jnp.iscomplex(x)
(jnp.iscomplexobj(x), jnp.isrealobj(x))
(jnp.array_equal(x, x), jnp.array_equal(x, y), jnp.array_equal(x, x[0]), jnp.array_equiv(x, x))
special.xlog1py(jnp.abs(x), jnp.abs(y))
special.betaln(jnp.abs(x), jnp.abs(y))
special.rel_entr(x, y)
special.ndtr(x)
special.entr(x)
special.i1e(x)
jnp.vecdot(x, y)
jnp.vecdot(x, y, axis=0)
jnp.matvec(x, y[0])
jnp.vecmat(x[:, 0], y)
jnp.diag_indices(3)
jnp.tril_indices(3)
jnp.triu_indices(3, k=1, m=4)
jnp.unravel_index(jnp.array([3, 5, 0]), (2, 3))
jnp.apply_along_axis(lambda r: r * r.sum(), 0, x)
jnp.apply_along_axis(jnp.cumsum, 1, x)
jnp.fill_diagonal(x, 9.0, inplace=False)
jnp.put_along_axis(x, jnp.array([[0], [2]]), 5.0, axis=1, inplace=False)
jnp.linalg.pinv(x)
jnp.linalg.matrix_rank(x)
jnp.linalg.cond(x)
jnp.linalg.multi_dot([x, y.T, x])
jnp.linalg.vector_norm(x, axis=1)
jnp.linalg.vector_norm(x, ord=1)
jnp.linalg.matrix_norm(x)
nn.hard_tanh(x)
nn.hard_silu(x)
nn.hard_swish(x)
nn.squareplus(x)
nn.sparse_plus(x)
nn.sparse_sigmoid(x)
nn.log1mexp(jnp.abs(x) + 0.1)
nn.identity(x)
lax.clamp(-1.0, x, 1.0)
lax.slice_in_dim(x, 1, 3, axis=1)
lax.slice(x, (0, 1), (2, 3))
lax.index_in_dim(x, 1, axis=1)
lax.index_in_dim(x, -1, axis=1, keepdims=False)
lax.broadcast_in_dim(x[0], (2, 3), (1,))
lax.broadcast(x, (2,))
lax.argmax(x, 1, jnp.int32)
lax.argmin(x, 0, jnp.int32)
lax.integer_pow(x, 3)
lax.convert_element_type(x, jnp.int32)
lax.bitcast_convert_type(x, jnp.int32)
lax.cumprod(x, axis=1, reverse=True)
lax.broadcasted_iota(jnp.int32, (2, 3), 1)
lax.iota(jnp.float32, 4)
lax.exp(x) + lax.sin(x) * lax.tanh(y) - lax.abs(lax.neg(x))
lax.add(x, lax.mul(y, lax.max(x, y))) / lax.sub(x, y)
lax.select(lax.gt(x, y), lax.floor(x), lax.ceil(y))
lax.div(x[0].astype(jnp.int32), jnp.array([2, 3, -4]))
lax.rem(x[1].astype(jnp.int32), jnp.array([2, 3, -4]))
lax.expand_dims(x, (0,)) + lax.full((1, 2, 3), 2.0)
lax.rev(x, (1,))
lax.squeeze(x[None], (0,))
lax.nextafter(x, y)
jnp.nextafter(x, y)
(jnp.acos(x / 9), jnp.asin(x / 9), jnp.atan(x), jnp.atan2(x, y), jnp.asinh(x), jnp.atanh(x / 9), jnp.acosh(jnp.abs(x) + 1))
jnp.concat([x, y]) + jnp.degrees(jnp.radians(1.0))
jnp.hypot(x, y) + jnp.arctan2(x, y)
""", X, Y)
each("""
jnp.nanprod(x)
jnp.nanvar(x)
jnp.nanstd(x, ddof=1)
jnp.nancumsum(x)
jnp.nancumprod(x)
jnp.nanargmax(x)
jnp.nanargmin(x)
""", ["NaN", 1.0, 2.5, -2.0, "NaN", 0.5])
each("""
jnp.bartlett(5)
jnp.blackman(6)
jnp.hamming(7)
jnp.hanning(5)
jnp.bitwise_count(jnp.array([0, 7, 255, -3]))
lax.population_count(jnp.array([0, 7, 255]))
lax.clz(jnp.array([1, 7, 255]))
lax.shift_right_logical(jnp.array([-8, 8]), jnp.array([1, 1])) + lax.shift_left(jnp.array([1, 2]), jnp.array([3, 1]))
""")
case("attention", "def f(q, k): return nn.dot_product_attention(q, k, k * 2), nn.dot_product_attention(q, k, k, is_causal=True, scale=0.5)", [T, [[[0.5, -1.0], [1.5, 0.25], [-0.5, 2.0]]] * 2], [T, T])
case("attention with groups and a mask", "def f(q, k): return nn.dot_product_attention(q[None], k[None], k[None], bias=jnp.ones((1, 1, 3, 3)), mask=jnp.tril(jnp.ones((3, 3), bool))[None, None])", [[[1.0, 2.0], [3.0, 4.0]]] * 3, [[[0.5, -0.5]], [[1.0, 0.25]], [[0.75, 1.5]]])
case("an error inside of a library function", "def f(x):\n    return jnp.convolve(x, x)", X, refused="invalid_program", says="line 2, column 15: convolve takes arrays of one dimension")

# --- what a person at a terminal writes in the first hour

NX = [["NaN",1.0,2.5],[-2.0,"NaN",0.5],["NaN",4.0,3.0]]
each("""
jnp.nanquantile(x, 0.3)
jnp.nanquantile(x, 0.3, axis=0)
jnp.nanquantile(x, 0.3, axis=1, keepdims=True)
jnp.nanquantile(x, jnp.array([0.1, 0.6]), axis=1)
jnp.nanpercentile(x, 40)
jnp.nanmedian(x, axis=0)
jnp.nanmedian(x, keepdims=True)
""", NX)
each("""
jnp.nanmedian(x)
jnp.insert(x, 1, 9)
jnp.insert(x, 1, 9, axis=1)
jnp.insert(x, -1, 9.5, axis=0)
jnp.insert(x, 1, x[:, 0], axis=1)
jnp.insert(x, 2, x[0], axis=0)
jnp.delete(x, 1, axis=1)
jnp.delete(x, 1)
jnp.delete(x, -1, axis=1)
jnp.delete(x, slice(0, 2), axis=1)
jnp.diagflat(x)
jnp.diagflat(x[0], 1)
jnp.block([[x, x], [x, x * 2]])
jnp.block([x, x])
jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 2)), jnp.ones((1, 1))]])
jnp.block([x[0], 1.0])
jnp.resize(x, (4, 2))
jnp.resize(x, 3)
jnp.rollaxis(x, 1)
jnp.place(x, x < 0, jnp.array([7.0, 8.0]), inplace=False)
jnp.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v * 2, 5.0])
jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])
jnp.zeros(jnp.broadcast_shapes((3, 1), (1, 4), (4,)))
jax.scipy.stats.norm.pdf(x)
jax.scipy.stats.norm.pdf(x, 1.0, 2.0)
jax.scipy.stats.norm.logpdf(x, 1.0, 2.0)
jax.scipy.stats.norm.cdf(x)
jax.scipy.stats.norm.cdf(x, 1, 2)
jnp.linalg.svdvals(x)
lax.associative_scan(jnp.add, x)
lax.associative_scan(jnp.maximum, x, axis=1)
lax.associative_scan(lambda a, b: a * b, x, reverse=True)
jax.tree.reduce(lambda a, b: a + b, {'a': x, 'b': x * 2})
jax.tree.reduce(lambda a, b: a + b, [x, x * 2], 1.0)
jnp.nonzero(x > 0, size=4)
jnp.argwhere(x > 0, size=5, fill_value=-1)
""", X)
each("""
jnp.triu_indices_from(x)
jnp.tril_indices_from(x, -1)
jax.scipy.signal.convolve2d(x, x[:2, :2])
jax.scipy.signal.convolve2d(x, x[:2, :], mode='same')
jax.scipy.signal.convolve2d(x, x[:2, :2], mode='valid')
""", A)
each("""
jnp.insert(x, 0, 0)
jnp.insert(x, 2, jnp.array([7., 8.]))
jnp.delete(x, 0)
jnp.polyadd(x, x[1:])
jnp.polysub(x, x[1:])
jnp.polymul(x, x[1:])
jnp.polyder(x)
jnp.polyder(x, 2)
jnp.polyint(x)
jnp.polyint(x, 2)
jnp.choose(jnp.array([0, 1, 0, 5]), [x, -x], mode='clip')
jnp.choose(jnp.array([0, 1, -1, 5]), [x, -x], mode='wrap')
jnp.geomspace(1, 8, 4)
jnp.geomspace(1.0, 1000.0, 5)
lax.associative_scan(jnp.add, x)
""", V)
each("""
jax.ops.segment_sum(x, jnp.array([0, 0, 1, 2, -1]), num_segments=3)
jax.ops.segment_sum(x * 0.5, jnp.array([0, 4, 1, 2, 2]), 3)
jnp.unique(x, size=5, fill_value=-1)
jnp.unique(x, size=3)
jnp.unique(x, return_counts=True, size=5)
jnp.unique(x, return_index=True, return_inverse=True, return_counts=True, size=4)
jnp.unique(x, True, True, True, size=6, fill_value=9)
jnp.unique(x.reshape(5, 1), return_inverse=True, size=4)
jnp.nonzero(x, size=4, fill_value=-1)
jnp.nonzero(x > 100, size=2)
jnp.flatnonzero(x, size=6)
jnp.argwhere(x > 1, size=3)
jnp.polyadd(x, x[1:])
jnp.polymul(x, x)
jnp.polyder(x)
jnp.polyint(x)
jnp.insert(x, 3, 2.7)
jax.scipy.signal.convolve2d(x[None], x[None])
""", S)

each("""
jnp.partition(x, 1)
jnp.partition(x, -2)
jnp.argpartition(x, 1)
jnp.argpartition(x, -1)
""", [3.0, 1.0, 2.0, 1.0, 5.0, 0.5, 4.0])
each("""
jnp.partition(x, 1, axis=0)
jnp.argpartition(x, 0, axis=0)
""", A)
case("several for in a comprehension", """
def f(x):
    kernel = jnp.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    parts = [kernel[i, j] * x[i:i + 3, j:j + 3] for i in range(3) for j in range(3) if kernel.shape[0] > 2]
    pairs = [(i, j) for i in range(4) if i % 2 for j in range(i) if j != 1]
    return sum(parts), jnp.array(pairs), sum(i * j for i in range(3) for j in range(3))
""", [[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0], [1.0, 3.0, 5.0, 7.0, 9.0], [2.0, 4.0, 6.0, 8.0, 0.0], [9.0, 1.0, 8.0, 2.0, 7.0]])
case("dict comprehensions and ** in dicts", """
def f(p):
    m = {k: jnp.zeros_like(v) for k, v in p.items()}
    scaled = {k: v * i for i, (k, v) in enumerate(p.items()) if k != "c"}
    return {**m, "a": p["a"], **scaled, "d": 1.0}, {**{"x": p["a"], "y": 1}, "y": 2}
""", {"a": V, "b": W, "c": 2.0})
case("lists beside other indices", "def f(t): return t[[0, 1], [2, 0]], t[:, [2, 0]], t[0, :, [1, 0]], t[..., [True, False]], t[:, [True, False, True]], t[:, []], t.at[0, [0, 0]].add(1)", T)
case("a list alone", "def f(x): return x[[0, 1]]", V, refused="invalid_program", says="a list alone does not index an array")
case("and, or, not on scalars", """
def f(a, b):
    r = 0
    if a > 0 and b > 0:
        r = 1
    elif a > 0 or b > 0:
        r = 2
    if not a > 100 and a.ndim == 0:
        r += 10
    return r, a > 0 and b > 0, a > 5 or b < 0, not a > 0, a > 0 or False
""", 3.0, -1.0, twin="""
def f(a, b):
    r = jnp.where((a > 0) & (b > 0), 1, jnp.where((a > 0) | (b > 0), 2, 0))
    r = jnp.where(~(a > 100), r + 10, r)
    return r, (a > 0) & (b > 0), (a > 5) | (b < 0), ~(a > 0), a > 0
""")
case("a chain of comparisons", """
def f(s, n):
    if 0 < s < 5 <= n:
        s = s * 2
    return s, 0 < n < s < 100, 1 < 2 < s
""", 3.0, 7, twin="""
def f(s, n):
    s = jnp.where((0 < s) & (s < 5) & (5 <= n), s * 2, s)
    return s, (0 < n) & (n < s) & (s < 100), 2 < s
""")
case("while with and", """
def f(lo, hi):
    n = 0
    while hi - lo > 1e-3 and n < 50:
        mid = (lo + hi) / 2
        if mid ** 2 > 2:
            hi = mid
        else:
            lo = mid
        n += 1
    return (lo + hi) / 2, n
""", 0.0, 2.0, twin="""
def f(lo, hi):
    def body(s):
        lo, hi, n = s
        mid = (lo + hi) / 2
        return jnp.where(mid ** 2 > 2, lo, mid), jnp.where(mid ** 2 > 2, mid, hi), n + 1
    lo, hi, n = lax.while_loop(lambda s: (s[1] - s[0] > 1e-3) & (s[2] < 50), body, (lo, hi, 0))
    return (lo + hi) / 2, n
""")
case("and computes its second side where Python does", """
def loud(x):
    log("asked {}", x)
    return x > 1
def f(x):
    return x > 10 and loud(x), x > 0 and loud(x), x > 0 or loud(x + 1)
""", 3.0, twin="def f(x): return x > 10, x > 1, x > 0", logs=["asked {}"])
case("and of arrays", "def f(x): return x > 0 and x < 2", V, refused="invalid_program", says="'and' needs to know the truth of a bool array of shape (4,)")
case("a chain of comparisons of arrays", "def f(x): return 0 < x < 2", V, refused="invalid_program", says="on arrays write (a < b) & (b < c)")
case("Python's small functions", """
from typing import Optional
def f(x: jnp.ndarray, mode: str = " Same "):
    codes = [ord(c) for c in "Hi!"]
    assert chr(72) == "H" and mode.strip().lower() == "same" and mode.upper().endswith("SAME ") and "ab".startswith("a")
    order = sorted([(2, "b"), (1, "z"), (2, "a")], key=lambda p: p[0], reverse=True)
    hist = [x, x * 2]
    hist.insert(0, -x)
    hist.insert(-1, x * 3)
    if x.ndim != 1 or not isinstance(x, jnp.ndarray):
        raise ValueError("x has one dimension")
    return hist, jnp.array(codes), [p[0] for p in order], order[0][1] == "b", round(2.567, 2), round(-2.5), round(7, 1), round(x, 1), float("inf"), -float("inf"), [v for v in filter(lambda k: k % 2, [1, 2, 3])], jnp.around(x, 1)
""", [1.25, -2.06, 3.5])
case("einsum with hints", "def f(x, y): return jnp.einsum('ij,kj->ik', x, y, optimize=True, precision='highest')", X, Y)
case("from scipy's modules", "from jax.scipy import stats\nfrom jax.scipy.stats import norm\ndef f(x): return stats.norm.pdf(x), norm.cdf(x)", V)
case("raise", "def f(x):\n    if x.ndim != 2:\n        raise ValueError('x has two dimensions')\n    return x", V, refused="invalid_program", says="line 3, column 9: the program raises ValueError: x has two dimensions")
case("quotes of an editor", "def f(x): return x if \u201ca\u201d else x", V, refused="program_syntax", says="'\u201c' is not the quote \", though it looks like it")
case("a minus of an editor", "def f(x): return x \u2212 1", V, refused="program_syntax", says="is not the minus -")
case("a letter of another alphabet", "def f(x): return \u03b1", V, refused="program_syntax", says="'\u03b1' starts nothing here; names have the letters a to z")
case("else if", "def f(x):\n    if x.ndim == 1:\n        return x\n    else if x.ndim == 2:\n        return x.T", V, refused="program_syntax", says="'else if' is spelt 'elif'")
case("&&", "def f(x): return (x > 0) && (x < 2)", V, refused="program_syntax", says="'&&' is spelt 'and'")
case("x++", "def f(x):\n    x++\n    return x", V, refused="program_syntax", says="'x += 1' counts")
case("the print of Python 2", "def f(x):\n    print x\n    return x", V, refused="program_syntax", says="writes to the log")
case("insert without a place that is known", "def f(x, i): return jnp.insert(x, i, 0)", V, 1, refused="invalid_program", says="insert takes a static place")
case("the type of arrays", "def f(x): return jnp.ndarray((2,))", V, refused="invalid_program", says="jnp.array makes an array")
case("keys that are numbers", "def f(x):\n    parts = {0: x, 1: x * 2}\n    return parts.get(1) - parts[0] if 1 in parts and 2 not in parts else x", X)

# --- complex numbers in what asks of NaN and infinities; indices outside of integers; narrow integers

D2 = {"dtype": "complex64", "shape": [2], "data": [[1.0, 2.0], [-3.0, 0.5]]}
I16 = {"dtype": "int16", "shape": [2, 2], "data": [[300, -7], [32767, 5]]}
WIDE = {"dtype": "bool", "shape": [2, 3], "data": [[True, False, True], [True, True, False]]}
each("""
jnp.isfinite(lax.complex(x, y))
jnp.isinf(lax.complex(x, y))
jnp.nansum(lax.complex(x, y)[:2])
jnp.isclose(lax.complex(x, y), lax.complex(x, y))
jnp.isclose(lax.complex(x, y), lax.complex(x, y), equal_nan=True)
jnp.take_along_axis(lax.complex(x, x), jnp.array([1, 7, -3, -9]), axis=0)
""", N, [1.0, 2.0, 3.0, "-Infinity", 0.5, "NaN"])
each("""
jnp.nanvar(x)
jnp.nanstd(x, ddof=1)
""", D2)
each("""
jnp.take_along_axis(x, jnp.array([[0, 2], [-1, -3]]), axis=1)
jnp.nan_to_num(x)
jnp.cumulative_sum(x, axis=1)
jnp.cumulative_sum(x, axis=-1, include_initial=True)
jnp.cumulative_prod(x[:0], axis=0, include_initial=True)
x.at[0].divide(2)
x.at[0].power(2)
""", I16)
case("take_along_axis of unsigned integers and bools outside", "def f(x): return jnp.take_along_axis(x, jnp.array([1, 9]), axis=0), jnp.take_along_axis(x > 100, jnp.array([0, 9]), axis=0)", U8)
case("fmod by 0", "jnp.fmod(x, y)", [7, -7, 5], [2, 0, -3])
case("convolve of integers", "jnp.convolve(x, y)", [1, 2, 3], U8)
case("digitize in falling bins", "(jnp.digitize(x, y), jnp.digitize(x, y, right=True), jnp.digitize(x, y[::-1]), jnp.digitize(x, y[:1]))", [0.5, 2.0, 9.0, 3.0], [3.0, 2.0, 1.0])
each("""
jnp.nanmedian(x)
jnp.nanquantile(x, 0.25)
""", BF)
each("""
jnp.sum(x, where=y)
jnp.sum(x, where=y, keepdims=True)
jnp.any(x, axis=0, where=y, keepdims=True)
""", [1.0, 2.0, 3.0], WIDE)
each("""
random.randint(x, (5,), -3, 3, dtype=jnp.int8)
random.randint(x, (5,), 0, 200, dtype=jnp.uint8)
random.randint(x, (5,), -500, 256, dtype=jnp.uint8)
random.randint(x, (5,), 0, 1000, dtype=jnp.int16)
random.randint(x, (2, 2), 0, 70000, dtype=jnp.uint16)
""", KEY)

# --- second derivatives where a function of two pieces has them, and slopes at bounds

each("""
jax.hessian(lambda v: nn.softplus(v).sum())(x)
jax.hessian(lambda v: nn.log_sigmoid(x * v).sum())(0.0)
jax.hessian(lambda v: jnp.logaddexp(v, v[::-1]).sum())(x)
jax.grad(lambda v: nn.relu6(v).sum())(x)
jax.grad(lambda v: nn.hard_tanh(v).sum())(x)
jax.grad(lambda v: nn.hard_sigmoid(v).sum())(x)
(jnp.logaddexp(x, 0.0), jnp.logaddexp(x, -jnp.inf), jnp.logaddexp(x, jnp.inf))
(nn.relu6(x), nn.hard_tanh(x), nn.hard_sigmoid(x))
""", [0.0, 6.0, -3.0, 3.0, -1.0, 1.0, 0.5])
case("activations of integers", "(nn.relu6(x), nn.hard_tanh(x), nn.hard_sigmoid(x))", [7, 0, -3])
case("functions that are transformed one after the other", "def f(x):\n    for i in range(24):\n        x = vmap(lambda r: jnp.sin(r) + i)(x)\n    return jax.grad(lambda v: (v * v).sum())(x)", X)

# --- slopes where a function has none, or none that is a number: as jax.grad has them

SLOPES = """
def slopes(functions, x):
    w = jnp.arange(x.size) % 3 + 1.0
    return [grad(lambda v: jnp.sum(jnp.real(function(v).ravel() * w[:function(v).size])))(x) for function in functions]

def f(x): return slopes([FUNCTIONS], x)
"""


def slopes(name, functions, *arguments):
    """The gradients of functions of one array, each element of a result with a weight of its own."""
    case(name, SLOPES.replace("FUNCTIONS", functions), *arguments)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, "Infinity", "-Infinity", "NaN"]
TIES = [2.0, 2.0, -1.0, 0.0, 2.0, 0.0, -1.0]
EDGES_C = {"dtype": "complex64", "shape": [6], "data": [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [3.0, 4.0], [-2.0, -1.0], [-0.5, 0.0]]}
BAD_C = {"dtype": "complex64", "shape": [4], "data": [["NaN", 1.0], [1.0, "Infinity"], ["-Infinity", "NaN"], [0.0, 2.0]]}
slopes("slopes of magnitudes", "jnp.abs, jnp.fabs, jnp.sign, lambda v: jnp.abs(v - 1), lambda v: jnp.hypot(v, 0.0), lambda v: jnp.copysign(v, -2.0), nn.soft_sign, lambda v: jnp.abs(v) ** 1.5", EDGES)
slopes("slopes of roots and powers", "jnp.sqrt, jnp.cbrt, lax.rsqrt, jnp.reciprocal, lambda v: v ** -2, lambda v: v ** -3, lambda v: v ** 0, lambda v: v ** 0.5, lambda v: v ** 0.0, lambda v: v ** jnp.array(0), lambda v: v ** (jnp.arange(10) % 3), lambda v: 0.0 ** v", EDGES)
slopes("slopes at bounds", "lambda v: jnp.clip(v, -1.0, 1.0), lambda v: lax.clamp(-1.0, v, 1.0), lambda v: lax.clamp(1.0, v, -1.0), lambda v: jnp.maximum(v, 0), nn.relu, nn.relu6, nn.hard_tanh, nn.hard_sigmoid, nn.leaky_relu, nn.elu", EDGES)
slopes("slopes of logarithms", "jnp.log, jnp.log1p, special.entr, special.logit, nn.log1mexp, lambda v: special.xlogy(v, v), lambda v: special.xlogy(v, 2.0), lambda v: special.xlogy(v, 0.0), lambda v: special.xlog1py(v, -1.0), lambda v: special.rel_entr(v, 0.5), lambda v: jnp.logaddexp(v, v), lambda v: jnp.logaddexp(v, -jnp.inf), lambda v: jnp.logaddexp(1.0, v), lambda v: special.polygamma(1, v + 2)", EDGES)
slopes("slopes of choices", "lambda v: jnp.where(v > 0, jnp.sqrt(v), 0.0), lambda v: jnp.where(v == 0, 1.0, jnp.sin(v) / v), lambda v: jnp.piecewise(v, [v < 0, v >= 0], [lambda u: -u, lambda u: u * u]), lambda v: vmap(lambda u: lax.cond(u > 0, jnp.sqrt, lambda z: 2 * z, u))(v), lambda v: jnp.nan_to_num(v, nan=1.0, posinf=2.0), lambda v: jnp.ldexp(v, 2)", EDGES)
slopes("slopes of equals", "jnp.max, jnp.min, jnp.ptp, jnp.sort, jnp.median, lambda v: jnp.partition(v, 2), lambda v: lax.top_k(v, 3)[0], lax.cummax, lax.cummin, lambda v: lax.cummax(v, reverse=True), lambda v: lax.associative_scan(jnp.maximum, v), lambda v: jnp.maximum(v, v[::-1]), lambda v: jnp.linalg.norm(v, ord=1), lambda v: jnp.linalg.norm(v, ord=jnp.inf), lambda v: jnp.linalg.norm(v, ord=-jnp.inf), lambda v: jnp.linalg.norm(v - v), lambda v: v.at[jnp.array([0, 0, 2])].max(2.0)", TIES)
slopes("slopes of sums of exponentials with infinities", "special.logsumexp, nn.softmax, nn.log_softmax, jnp.max, nn.logsumexp", ["-Infinity", 1.0, 2.0])
slopes("slopes at indices outside", "lambda v: v[jnp.array([0, 9, -1, -9])], lambda v: v[jnp.array([9])], lambda v: v[jnp.array(9)], lambda v: jnp.take(v, jnp.array([0, 9, -1, -9])), lambda v: jnp.take(v, jnp.array([0, 9, -1, -9]), mode='clip'), lambda v: jnp.take(v, jnp.array([0, 9, -1, -9]), mode='wrap'), lambda v: vmap(lambda i: v[i])(jnp.array([0, 9, -9])), lambda v: vmap(lambda i: v[i])(jnp.array([[0, 9], [-9, 1]])), lambda v: vmap(lambda i: lax.dynamic_slice(v, (i,), (2,)))(jnp.array([0, 9])), lambda v: jnp.take_along_axis(v, jnp.array([0, 9, -9]), axis=0)", [1.0, -2.0, 3.0, 0.5])
slopes("slopes of complex numbers", "jnp.abs, lambda v: jnp.abs(v) ** 2, jnp.angle, jnp.linalg.norm, lambda v: jnp.linalg.norm(v, ord=1), lambda v: jnp.max(jnp.abs(v)), jnp.conj, lambda v: jnp.real(v) * jnp.imag(v), lambda v: jnp.exp(v), lambda v: v ** 3", EDGES_C)
slopes("slopes of determinants", "jnp.linalg.det, lambda v: jnp.linalg.det(v + jnp.eye(3)), lambda v: jnp.linalg.det(v[:2, :2])", [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
each("""
jax.hessian(lambda v: jnp.sum(jnp.sinc(v)))(x)
jax.hessian(lambda v: jnp.sum(special.entr(v) + special.xlogy(v, v) + v ** -2))(x + 1)
jax.jacrev(jax.grad(lambda v: jnp.sum(jnp.sinc(v) ** 2 * jnp.cos(v))))(x)
jax.jvp(jnp.sinc, (x,), (x + 1,))
vmap(jax.grad(jnp.abs))(x)
vmap(jax.grad(lambda v: special.xlogy(v, 2.0)))(x)
""", [0.0, 0.5, 2.0, -0.25])
each("""
jnp.nan_to_num(x)
jnp.nan_to_num(x, nan=2.0, posinf=1.0, neginf=-1.0)
""", BAD_C)
each("""
jnp.nan_to_num(x)
jnp.nan_to_num(x.astype(jnp.bfloat16), posinf=3.0)
jnp.nan_to_num(x.astype(jnp.float16), nan=1.0)
lax.associative_scan(jnp.add, jnp.nan_to_num(x, posinf=2.0, neginf=5.0))
special.xlogy(jnp.zeros(10), x)
""", EDGES)
case("a derivative of a loop whose end depends on data", "def f(x): return grad(lambda v: lax.while_loop(lambda c: c < 9, lambda c: c * v, v))(x)", 1.5, refused="unsupported_op", says="the text tells how often it runs")



def text_of(source, arguments, options):
    """The program of a case."""
    if "def " in source or "class " in source:
        return source.strip() + "\n"
    names = {"key": "key", "n": "n", "b": "b"}
    for name in names:
        if source.startswith(name + " ") or f"({name}" in source and name == "key" or source.startswith(f"jnp.where({name},"):
            return f"def f({name}):\n    return {source}\n"
    return f"def f({', '.join('xyzw'[: len(arguments)])}):\n    return {source}\n"

# --- names and shapes that are found by their meaning

case("where with a size", "def f(x): return jnp.where(x > 1, size=3, fill_value=-1)", X)
case("union1d with a size", "def f(x, y): return jnp.union1d(x, y, size=8)", X, X)
case("tree_map of tree_util", "def f(x): return jax.tree_util.tree_map(jnp.negative, {'a': x, 'b': (x, 2 * x)}), jax.tree_util.tree_leaves([x, (x,)])", X)
case("named fields of logs", "def f(x):\n    jax.debug.print('{b} {} {1} {a:.2f} {b} {{}}', x[0], x[1], x[2], a=x.sum(), b=x)\n    return x * 2", [1, 2, 4], twin="def f(x): return x * 2", logs=["{b} {} {1} {a:.2f} {b} {{}}"], logged=[[[1, 2, 4], 1, 2, 7, [1, 2, 4], 4]])
case("a shape that is too large", "def f(x): return jnp.zeros((2 ** 40, 2 ** 40))", X, refused="invalid_program", says="'jnp.zeros': size")
