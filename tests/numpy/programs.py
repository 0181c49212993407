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
case("f-strings", "def f(x): return f'{x}'", X, refused="unsupported_type", says="f-strings")
case("recursion", "def f(x): return f(x)", X, refused="invalid_program", says="recursion")
case("and on arrays", "def f(x): return x > 0 and x < 1", X, refused="invalid_program", says="jnp.logical_and")
case("print", "def f(x):\n    print(x)\n    return x", X, refused="invalid_program", says="log(")
case("masks", "def f(x): return x[x > 0]", X, refused="invalid_program", says="jnp.where")
case("unique", "def f(x): return jnp.unique(x)", X, refused="unsupported_op", says="depends on data")
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
for derivative in ("jacfwd", "jacrev", "jvp", "vjp", "hessian", "pmap", "shard_map", "pure_callback"):
    case(derivative, f"def f(x): return jax.{derivative}(jnp.sum)(x)", X, refused="unsupported_op", says="not supported yet")
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
case("gradients of integers", "def f(x): return grad(jnp.sum)(x)", I, refused="invalid_program", says="real floats")
case("gradients of arrays", "def f(x): return grad(jnp.sin)(x)", X, refused="invalid_program", says="scalar")


def text_of(source, arguments, options):
    """The program of a case."""
    if "def " in source or "class " in source:
        return source.strip() + "\n"
    names = {"key": "key", "n": "n", "b": "b"}
    for name in names:
        if source.startswith(name + " ") or f"({name}" in source and name == "key" or source.startswith(f"jnp.where({name},"):
            return f"def f({name}):\n    return {source}\n"
    return f"def f({', '.join('xyzw'[: len(arguments)])}):\n    return {source}\n"
