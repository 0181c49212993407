// Functions that are written in NumPy syntax themselves, as jax.numpy composes them of others. Ops and errors have the
// place of the call.
#include "service/numpy/functions/table.h"
#include "service/numpy/syntax/parser.h"

namespace meshd::numpy {
namespace {

struct LibraryRow {
  const char* path;
  const char* signature;
  const char* body;  ///< statements, each in a line that begins with a blank
};

constexpr LibraryRow kStatistics[] = {
    {"jnp.trapezoid", "y, x=None, dx=1.0, axis=-1", R"(
 y = jnp.moveaxis(jnp.asarray(y), axis, -1)
 if x is not None:
  x = jnp.asarray(x)
  dx = jnp.diff(x) if x.ndim == 1 else jnp.moveaxis(jnp.diff(x, axis=axis), axis, -1)
 return 0.5 * (dx * (y[..., 1:] + y[..., :-1])).sum(-1))"},
    {"jnp.cov", "m, y=None, rowvar=True, bias=False, ddof=None", R"(
 x = jnp.atleast_2d(m) * 1.0
 if not rowvar and x.shape[0] != 1:
  x = x.T
 if y is not None:
  z = jnp.atleast_2d(y) * 1.0
  x = jnp.concatenate([x, z.T if not rowvar and z.shape[0] != 1 else z], axis=0)
 if ddof is None:
  ddof = 0 if bias else 1
 x = x - x.mean(axis=1)[:, None]
 return (x @ x.T.conj() / (x.shape[1] - ddof)).squeeze())"},
    {"jnp.corrcoef", "x, y=None, rowvar=True", R"(
 c = jnp.cov(x, y, rowvar)
 if c.ndim == 0:
  return c / c
 stddev = jnp.sqrt(jnp.real(jnp.diag(c)))
 return jnp.clip(c / stddev[:, None] / stddev[None, :], -1, 1))"},
    {"jnp.nanprod", "a, axis=None, keepdims=False", R"(
 return jnp.prod(jnp.where(jnp.isnan(a), 1, a), axis=axis, keepdims=keepdims))"},
    {"jnp.nancumsum", "a, axis=None", R"(
 return jnp.cumsum(jnp.where(jnp.isnan(a), 0, a), axis=axis))"},
    {"jnp.nancumprod", "a, axis=None", R"(
 return jnp.cumprod(jnp.where(jnp.isnan(a), 1, a), axis=axis))"},
    {"jnp.nanvar", "a, axis=None, ddof=0, keepdims=False", R"(
 a = jnp.asarray(a) * 1.0
 centered = jnp.where(jnp.isnan(a), 0, a - jnp.nanmean(a, axis=axis, keepdims=True))
 count = jnp.sum(jnp.logical_not(jnp.isnan(a)), axis=axis, keepdims=keepdims) - ddof
 squares = jnp.real(centered * jnp.conj(centered)) if jnp.iscomplexobj(a) else centered * centered
 result = jnp.sum(squares, axis=axis, keepdims=keepdims) / count
 return jnp.where(count > 0, result, jnp.nan))"},
    {"jnp.nanstd", "a, axis=None, ddof=0, keepdims=False", R"(
 return jnp.sqrt(jnp.nanvar(a, axis=axis, ddof=ddof, keepdims=keepdims)))"},
    {"jnp.nanargmax", "a, axis=None, keepdims=False", R"(
 best = jnp.argmax(jnp.where(jnp.isnan(a), -jnp.inf, a), axis=axis, keepdims=keepdims)
 return jnp.where(jnp.all(jnp.isnan(a), axis=axis, keepdims=keepdims), -1, best))"},
    {"jnp.nanargmin", "a, axis=None, keepdims=False", R"(
 best = jnp.argmin(jnp.where(jnp.isnan(a), jnp.inf, a), axis=axis, keepdims=keepdims)
 return jnp.where(jnp.all(jnp.isnan(a), axis=axis, keepdims=keepdims), -1, best))"},
    {"jnp.histogram", "a, bins=10, range=None", R"(
 a = jnp.ravel(a) * 1.0
 low, high = (a.min(), a.max()) if range is None else range
 low, high = jnp.where(low == high, low - 0.5, low), jnp.where(low == high, high + 0.5, high)
 edges = jnp.linspace(low, high, bins + 1)
 place = jnp.searchsorted(edges, a, side='right')
 place = jnp.where(a == edges[-1], bins, place)
 return jnp.zeros(bins + 1, a.dtype).at[place].add(jnp.ones_like(a))[1:], edges)"},
    {"jnp.ediff1d", "ary", R"(
 return jnp.diff(jnp.ravel(ary)))"},
    {"jnp.cumulative_sum", "x, axis=None, include_initial=False", R"(
 x = jnp.asarray(x)
 axis = 0 if axis is None else axis
 if include_initial:
  x = jnp.concatenate([jnp.zeros_like(x, shape=[1 if d == axis % x.ndim else n for d, n in enumerate(x.shape)]), x], axis=axis)
 narrow = jnp.issubdtype(x.dtype, jnp.integer) and x.dtype.itemsize < 4
 return jnp.cumsum(x, axis=axis, dtype=(jnp.uint32 if jnp.iinfo(x.dtype).min == 0 else jnp.int32) if narrow else None))"},
    {"jnp.cumulative_prod", "x, axis=None, include_initial=False", R"(
 x = jnp.asarray(x)
 axis = 0 if axis is None else axis
 if include_initial:
  x = jnp.concatenate([jnp.ones_like(x, shape=[1 if d == axis % x.ndim else n for d, n in enumerate(x.shape)]), x], axis=axis)
 return jnp.cumprod(x, axis=axis))"},
    {"jnp.nanquantile", "a, q, axis=None, keepdims=False", R"(
 a = jnp.asarray(a) * 1.0
 rank = a.ndim
 if axis is None:
  a = jnp.ravel(a)
 a = jnp.sort(jnp.moveaxis(a, 0 if axis is None else axis, 0), axis=0)
 last = jnp.sum(jnp.logical_not(jnp.isnan(a)), axis=0) - 1.0
 place = jnp.expand_dims(jnp.asarray(q) * 1.0, tuple(range(jnp.ndim(q), jnp.ndim(q) + last.ndim))) * last
 low, high = jnp.floor(place), jnp.ceil(place)
 share = place - low
 def pick(at):
  at = jnp.clip(at, 0, a.shape[0] - 1).astype(jnp.int32)
  return jnp.take_along_axis(a, at.reshape((-1,) + a.shape[1:]), axis=0).reshape(at.shape)
 out = jnp.where(last < 0, jnp.nan, pick(low) * (1 - share) + pick(high) * share).astype(a.dtype)
 if not keepdims:
  return out
 if axis is None:
  return out.reshape(jnp.shape(q) + (1,) * rank)
 return jnp.expand_dims(out, axis + jnp.ndim(q) if axis >= 0 else axis))"},
    {"jnp.nanpercentile", "a, q, axis=None, keepdims=False", R"(
 return jnp.nanquantile(a, jnp.asarray(q) / 100, axis=axis, keepdims=keepdims))"},
    {"jnp.nanmedian", "a, axis=None, keepdims=False", R"(
 return jnp.nanquantile(a, 0.5, axis=axis, keepdims=keepdims))"},
    {"jnp.partition", "a, kth, axis=-1", R"(
 line = jnp.swapaxes(a, axis, -1)
 n = line.shape[-1]
 kth = kth + n if kth < 0 else kth
 shift = 1 if jnp.issubdtype(line.dtype, jnp.integer) and jnp.iinfo(line.dtype).min == 0 else 0
 bottom = -lax.top_k(-(line + shift), kth + 1)[0] - shift if shift else -lax.top_k(-line, kth + 1)[0]
 return jnp.swapaxes(jnp.concatenate([bottom, lax.top_k(line, n - kth - 1)[0]], axis=-1), -1, axis))"},
    {"jnp.argpartition", "a, kth, axis=-1", R"(
 order = jnp.argsort(jnp.moveaxis(a, axis, -1), axis=-1)
 n = order.shape[-1]
 kth = kth + n if kth < 0 else kth
 below = jnp.argsort(order, axis=-1) <= kth
 rest = jnp.argsort(below, axis=-1)[..., :n - kth - 1]
 return jnp.moveaxis(jnp.concatenate([order[..., :kth + 1], rest], axis=-1), -1, axis))"},
};

constexpr LibraryRow kSignals[] = {
    {"jnp.convolve", "a, v, mode='full'", R"(
 assert a.ndim == 1 and v.ndim == 1, 'convolve takes arrays of one dimension'
 a, v = a * 1.0, v * 1.0
 assert mode in ('full', 'same', 'valid'), 'mode is one of full, same and valid'
 if a.shape[0] < v.shape[0]:
  a, v = v, a
 n, m = a.shape[0], v.shape[0]
 padded = jnp.pad(a, (m - 1, m - 1))
 out = 0 * (a[0] * v[0]) + jnp.zeros(n + m - 1, jnp.bool_)
 for k in range(m):
  out = out + v[k] * lax.dynamic_slice(padded, (m - 1 - k,), (n + m - 1,))
 if mode == 'same':
  return out[(m - 1) // 2:(m - 1) // 2 + n]
 return out[m - 1:n] if mode == 'valid' else out)"},
    {"jnp.correlate", "a, v, mode='valid'", R"(
 if a.shape[0] < v.shape[0]:
  return jnp.convolve(v[::-1].conj(), a, mode)
 return jnp.convolve(a, v[::-1].conj(), mode))"},
    {"jnp.gradient", "f, *varargs, axis=None", R"(
 axes = list(range(f.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
 assert len(varargs) in (0, 1, len(axes)), 'gradient takes no spacing, one, or one for each axis'
 out = []
 for i, d in enumerate(axes):
  g = jnp.moveaxis(f, d, 0) * 1.0
  h = 1.0 if len(varargs) == 0 else varargs[0] if len(varargs) == 1 else varargs[i]
  g = jnp.concatenate([g[1:2] - g[:1], (g[2:] - g[:-2]) * 0.5, g[-1:] - g[-2:-1]], axis=0)
  out = out + [jnp.moveaxis(g / h, 0, d)]
 return out[0] if len(axes) == 1 else out)"},
    {"jnp.unwrap", "p, discont=None, axis=-1, period=6.283185307179586", R"(
 period = 2 * jnp.pi if period is None else period
 discont = period / 2 if discont is None else discont
 dd = jnp.diff(p, axis=axis)
 ddmod = jnp.mod(dd + period / 2, period) - period / 2
 ddmod = jnp.where((ddmod == -(period / 2)) & (dd > 0), period / 2, ddmod)
 correct = jnp.where(jnp.abs(dd) < discont, 0., ddmod - dd)
 first = lax.slice_in_dim(p, 0, 1, axis=axis)
 rest = lax.slice_in_dim(p, 1, p.shape[axis], axis=axis)
 return jnp.concatenate([first, rest + jnp.cumsum(correct, axis=axis)], axis=axis))"},
    {"jnp.bartlett", "M", R"(
 n = jnp.arange(M) * 1.0
 return jnp.ones(M) if M <= 1 else 1 - jnp.abs(2 * n + 1 - M) / (M - 1))"},
    {"jnp.blackman", "M", R"(
 n = jnp.arange(M) * 1.0
 return jnp.ones(M) if M <= 1 else 0.42 - 0.5 * jnp.cos(2 * jnp.pi * n / (M - 1)) + 0.08 * jnp.cos(4 * jnp.pi * n / (M - 1)))"},
    {"jnp.hamming", "M", R"(
 n = jnp.arange(M) * 1.0
 return jnp.ones(M) if M <= 1 else 0.54 - 0.46 * jnp.cos(2 * jnp.pi * n / (M - 1)))"},
    {"jnp.hanning", "M", R"(
 n = jnp.arange(M) * 1.0
 return jnp.ones(M) if M <= 1 else 0.5 * (1 - jnp.cos(2 * jnp.pi * n / (M - 1))))"},
    {"jnp.polyval", "p, x", R"(
 p = jnp.asarray(p)
 y = jnp.zeros(jnp.shape(x), jnp.result_type(p, x))
 for i in range(p.shape[0]):
  y = y * x + p[i]
 return y)"},
    {"jnp.vander", "x, N=None, increasing=False", R"(
 n = x.shape[0] if N is None else N
 powers = jnp.arange(n) if increasing else jnp.arange(n - 1, -1, -1)
 return x[:, None] ** powers)"},
    {"jnp.polyadd", "a1, a2", R"(
 n = max(a1.shape[0], a2.shape[0])
 return jnp.pad(a1, (n - a1.shape[0], 0)) + jnp.pad(a2, (n - a2.shape[0], 0)))"},
    {"jnp.polysub", "a1, a2", R"(
 n = max(a1.shape[0], a2.shape[0])
 return jnp.pad(a1, (n - a1.shape[0], 0)) - jnp.pad(a2, (n - a2.shape[0], 0)))"},
    {"jnp.polymul", "a1, a2", R"(
 return jnp.convolve(a1 * 1.0, a2 * 1.0))"},
    {"jnp.polyder", "p, m=1", R"(
 p = p * 1.0
 for i in range(m):
  p = p[:-1] * jnp.arange(p.shape[0] - 1, 0, -1)
 return p)"},
    {"jnp.polyint", "p, m=1", R"(
 p = p * 1.0
 for i in range(m):
  p = jnp.concatenate([p / jnp.arange(p.shape[0], 0, -1), jnp.zeros(1, p.dtype)])
 return p)"},
    {"jax.scipy.signal.convolve2d", "in1, in2, mode='full'", R"(
 assert in1.ndim == 2 and in2.ndim == 2, 'convolve2d takes arrays of two dimensions'
 assert mode in ('full', 'same', 'valid'), 'mode is one of full, same and valid'
 H, W = in1.shape
 h, w = in2.shape
 padded = jnp.pad(in1 * 1.0, ((h - 1, h - 1), (w - 1, w - 1)))
 out = jnp.zeros((H + h - 1, W + w - 1))
 for i in range(h):
  for j in range(w):
   out = out + in2[i, j] * padded[h - 1 - i:H + 2 * h - 2 - i, w - 1 - j:W + 2 * w - 2 - j]
 if mode == 'same':
  return out[(h - 1) // 2:(h - 1) // 2 + H, (w - 1) // 2:(w - 1) // 2 + W]
 if mode == 'valid':
  assert H >= h and W >= w, 'for valid the first array is the larger one'
  return out[h - 1:H, w - 1:W]
 return out)"},
};

constexpr LibraryRow kElementwise[] = {
    {"jnp.copysign", "x1, x2", R"(
 size, x2 = jnp.abs(jnp.asarray(x1) * 1.0), jnp.asarray(x2) * 1.0
 return jnp.where(jnp.signbit(x2), -size, size))"},
    {"jnp.logaddexp2", "x1, x2", R"(
 return jnp.logaddexp(x1 * jnp.log(2.0), x2 * jnp.log(2.0)) / jnp.log(2.0))"},
    {"jnp.modf", "x", R"(
 x = jnp.asarray(x) * 1.0
 whole = jnp.where(x >= 0, jnp.floor(x), jnp.ceil(x))
 return jnp.where(jnp.isinf(x), 0.0, x - whole), whole)"},
    {"jnp.ldexp", "x1, x2", R"(
 x1 = jnp.asarray(x1)
 return jnp.where((x1 == 0) | jnp.isinf(x1), x1, x1 * (2.0 ** x2)))"},
    {"jnp.nan_to_num", "x, copy=True, nan=0.0, posinf=None, neginf=None", R"(
 x = jnp.asarray(x)
 if not jnp.issubdtype(x.dtype, jnp.inexact):
  return x
 def real(part):
  limits = jnp.finfo(part.dtype)
  out = jnp.where(jnp.isnan(part), jnp.asarray(nan).astype(part.dtype), part)
  out = jnp.where(jnp.isposinf(out), jnp.asarray(limits.max if posinf is None else posinf).astype(part.dtype), out)
  return jnp.where(jnp.isneginf(out), jnp.asarray(limits.min if neginf is None else neginf).astype(part.dtype), out)
 return lax.complex(real(jnp.real(x)), real(jnp.imag(x))) if jnp.iscomplexobj(x) else real(x))"},
    {"jnp.isreal", "x", R"(
 return jnp.imag(x) == 0)"},
    {"jnp.iscomplex", "x", R"(
 return jnp.imag(x) != 0)"},
    {"jnp.iscomplexobj", "x", R"(
 return jnp.issubdtype(jnp.asarray(x).dtype, jnp.complexfloating))"},
    {"jnp.isrealobj", "x", R"(
 return not jnp.issubdtype(jnp.asarray(x).dtype, jnp.complexfloating))"},
    {"jnp.array_equal", "a1, a2, equal_nan=False", R"(
 if jnp.shape(a1) != jnp.shape(a2):
  return jnp.asarray(False)
 same = jnp.equal(a1, a2)
 return jnp.all(same | (jnp.isnan(a1) & jnp.isnan(a2)) if equal_nan else same))"},
    {"jnp.array_equiv", "a1, a2", R"(
 return jnp.all(jnp.equal(a1, a2)))"},
    {"special.entr", "x", R"(
 x = jnp.asarray(x) * 1.0
 return jnp.where(x < 0, -jnp.inf, -special._xlogx(x)))"},
    {"special.betaln", "a, b", R"(
 return special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b))"},
    {"special.rel_entr", "p, q", R"(
 both = (p > 0) & (q > 0)
 zero = (p == 0) & (q >= 0)
 safe_p = jnp.where(both, p, 1)
 safe_q = jnp.where(both, q, 1)
 return jnp.where(both, special._xlogx(safe_p) - special.xlogy(safe_p, safe_q), jnp.where(zero, 0.0, jnp.inf)))"},
    {"special.ndtr", "x", R"(
 w = x * (0.5 * 2.0 ** 0.5)
 z = jnp.abs(w)
 tail = jnp.where(w > 0, 2.0 - special.erfc(z), special.erfc(z))
 return 0.5 * jnp.where(z < 0.5 * 2.0 ** 0.5, 1.0 + special.erf(w), tail))"},
    {"jnp.choose", "a, choices, mode='raise'", R"(
 assert mode in ('clip', 'wrap'), "choose takes mode='clip' or mode='wrap': an index outside cannot raise"
 n = len(choices)
 at = jnp.clip(a, 0, n - 1) if mode == 'clip' else a % n
 return jnp.select([at == i for i in range(n)], list(choices), 0))"},
    {"jnp.piecewise", "x, condlist, funclist, *args, **kw", R"(
 x = jnp.asarray(x)
 default = 0
 if len(funclist) == len(condlist) + 1:
  default = funclist[-1]
 assert len(funclist) in (len(condlist), len(condlist) + 1), 'piecewise takes a function for each condition, and one more'
 def value(f, where):
  y = f if isinstance(f, (int, float, jnp.ndarray)) else f(jnp.where(where, x, lax.stop_gradient(x)), *args, **kw)
  return jnp.asarray(y).astype(x.dtype)
 none = jnp.logical_not(condlist[0])
 for i in range(1, len(condlist)):
  none = jnp.logical_and(none, jnp.logical_not(condlist[i]))
 out = jnp.broadcast_to(value(default, none), x.shape)
 for i in range(len(condlist) - 1, -1, -1):
  out = jnp.where(condlist[i], value(funclist[i], condlist[i]), out)
 return out)"},
    {"jnp.geomspace", "start, stop, num=50, endpoint=True", R"(
 return jnp.logspace(jnp.log10(start), jnp.log10(stop), num, endpoint=endpoint))"},
    {"jax.scipy.stats.norm.logpdf", "x, loc=0, scale=1", R"(
 z = (x - loc) / scale
 return -(jnp.log(2 * jnp.pi * (scale * scale) * 1.0) + z * z) / 2)"},
    {"jax.scipy.stats.norm.pdf", "x, loc=0, scale=1", R"(
 return jnp.exp(jax.scipy.stats.norm.logpdf(x, loc, scale)))"},
    {"jax.scipy.stats.norm.cdf", "x, loc=0, scale=1", R"(
 return special.ndtr((x - loc) / scale))"},
};

constexpr LibraryRow kShapes[] = {
    {"jnp.vecdot", "x1, x2, axis=-1", R"(
 return jnp.einsum('...i,...i->...', jnp.moveaxis(jnp.conj(x1), axis, -1), jnp.moveaxis(x2, axis, -1)))"},
    {"jnp.matvec", "x1, x2", R"(
 return jnp.einsum('...ij,...j->...i', x1, x2))"},
    {"jnp.vecmat", "x1, x2", R"(
 return jnp.einsum('...i,...ij->...j', jnp.conj(x1), x2))"},
    {"jnp.diag_indices", "n, ndim=2", R"(
 return tuple([jnp.arange(n) for i in range(ndim)]))"},
    {"jnp.unravel_index", "indices, shape", R"(
 sizes = [shape] if isinstance(shape, int) else list(shape)
 total = 1
 for size in sizes:
  total = total * size
 indices = jnp.clip(indices, -total, total - 1)
 left = jnp.where(indices < 0, indices + total, indices)
 out = []
 for size in reversed(sizes):
  out = [left % size] + out
  left = left // size
 return tuple(out))"},
    {"jnp.apply_along_axis", "func1d, axis, arr, *args, **kwargs", R"(
 axis = axis + arr.ndim if axis < 0 else axis
 func = lambda row: func1d(row, *args, **kwargs)
 for i in range(1, arr.ndim - axis):
  func = jax.vmap(func, in_axes=i, out_axes=-1)
 for i in range(axis):
  func = jax.vmap(func, in_axes=0, out_axes=0)
 return func(arr))"},
    {"jnp.fill_diagonal", "a, val, wrap=False, *, inplace=True", R"(
 assert not inplace, 'arrays are not changed in place: say inplace=False'
 i = jnp.arange(min(a.shape))
 return a.at[tuple([i for d in range(a.ndim)])].set(val))"},
    {"jnp.put_along_axis", "arr, indices, values, axis, inplace=True", R"(
 assert not inplace, 'arrays are not changed in place: say inplace=False'
 axis = axis + arr.ndim if axis < 0 else axis
 grid = [jnp.arange(n).reshape([-1 if k == d else 1 for k in range(arr.ndim)]) for d, n in enumerate(arr.shape)]
 return arr.at[tuple([indices if d == axis else grid[d] for d in range(arr.ndim)])].set(values))"},
    {"jnp.linalg.det", "a", R"(
 a = jnp.asarray(a)
 if a.ndim < 2 or a.shape[-2] != a.shape[-1] or a.shape[-1] not in (2, 3):
  return jnp.linalg._det_by_lu(a)
 a = a * 1.0
 at = lambda i, j: a[..., i, j]
 if a.shape[-1] == 2:
  return at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
 return (at(0, 0) * at(1, 1) * at(2, 2) + at(0, 1) * at(1, 2) * at(2, 0) + at(0, 2) * at(1, 0) * at(2, 1)
   - at(0, 2) * at(1, 1) * at(2, 0) - at(0, 0) * at(1, 2) * at(2, 1) - at(0, 1) * at(1, 0) * at(2, 2)))"},
    {"jnp.linalg.pinv", "a, rtol=None", R"(
 u, s, vh = jnp.linalg.svd(a, full_matrices=False)
 m, n = a.shape[-2:]
 rtol = 10. * max(m, n) * jnp.finfo(a.dtype).eps if rtol is None else rtol
 cutoff = rtol * s[..., 0:1]
 s = jnp.where(s > cutoff, s, jnp.inf)
 return jnp.conj(jnp.matrix_transpose(vh)) @ (jnp.conj(jnp.matrix_transpose(u)) / s[..., None]))"},
    {"jnp.linalg.matrix_rank", "M, rtol=None", R"(
 s = jnp.linalg.svd(M, compute_uv=False)
 rtol = s.max(axis=-1) * max(M.shape[-2:]) * jnp.finfo(s.dtype).eps if rtol is None else rtol * s.max(axis=-1)
 return (s > jnp.expand_dims(rtol, -1)).sum(axis=-1))"},
    {"jnp.linalg.cond", "x", R"(
 s = jnp.linalg.svd(x, compute_uv=False)
 return s[..., 0] / s[..., -1])"},
    {"jnp.linalg.multi_dot", "arrays", R"(
 out = arrays[0]
 for each in arrays[1:]:
  out = out @ each
 return out)"},
    {"jnp.linalg.vector_norm", "x, axis=None, keepdims=False, ord=2", R"(
 if axis is None:
  out = jnp.linalg.norm(jnp.ravel(x), ord=ord)
  return out.reshape((1,) * x.ndim) if keepdims else out
 return jnp.linalg.norm(x, axis=axis, keepdims=keepdims, ord=ord))"},
    {"jnp.linalg.matrix_norm", "x, keepdims=False, ord='fro'", R"(
 return jnp.linalg.norm(x, axis=(-2, -1), keepdims=keepdims, ord=ord))"},
    {"jnp.insert", "arr, obj, values, axis=None", R"(
 assert isinstance(obj, int), 'insert takes a static place; jnp.concatenate puts parts together'
 a = jnp.asarray(arr)
 if axis is None:
  a, axis = jnp.ravel(a), 0
 axis = axis + a.ndim if axis < 0 else axis
 n = a.shape[axis]
 assert -n <= obj <= n, 'the place to insert at is outside of the axis'
 obj = obj + n if obj < 0 else obj
 values = jnp.asarray(values).astype(a.dtype)
 values = values[None] if values.ndim == 0 else values
 values = jnp.moveaxis(values, 0, axis) if values.ndim == a.ndim and values.ndim > 1 else values
 if values.ndim < a.ndim and a.ndim > 1:
  values = jnp.expand_dims(jnp.broadcast_to(values, a.shape[:axis] + a.shape[axis + 1:]), axis)
 sizes = [values.shape[d] if d == axis else a.shape[d] for d in range(a.ndim)]
 values = jnp.broadcast_to(values, sizes)
 before, behind = lax.slice_in_dim(a, 0, obj, axis=axis), lax.slice_in_dim(a, obj, n, axis=axis)
 return jnp.concatenate([before, values, behind], axis=axis))"},
    {"jnp.delete", "arr, obj, axis=None", R"(
 a = jnp.asarray(arr)
 if axis is None:
  a, axis = jnp.ravel(a), 0
 n = a.shape[axis]
 gone = list(range(n))[obj] if not isinstance(obj, (int, list, tuple)) else [obj] if isinstance(obj, int) else list(obj)
 assert all([-n <= i < n for i in gone]), 'a place to delete is outside of the axis'
 gone = [i + n if i < 0 else i for i in gone]
 kept = [i for i in range(n) if i not in gone]
 return jnp.take(a, jnp.array(kept, dtype=jnp.int32), axis=axis))"},
    {"jnp.diagflat", "v, k=0", R"(
 return jnp.diag(jnp.ravel(v), k))"},
    {"jnp.block", "arrays", R"(
 def depth_of(x):
  n = 0
  while isinstance(x, list):
   x = x[0]
   n += 1
  return n
 depth = depth_of(arrays)
 if depth == 0:
  return jnp.asarray(arrays)
 if depth == 1:
  parts = [jnp.atleast_1d(x) for x in arrays]
  rank = max([x.ndim for x in parts])
  return jnp.concatenate([x.reshape((1,) * (rank - x.ndim) + x.shape) for x in parts], axis=-1)
 assert depth == 2, 'block takes lists of lists of arrays, two deep'
 rows = [[jnp.atleast_2d(x) for x in line] for line in arrays]
 return jnp.concatenate([jnp.concatenate(line, axis=-1) for line in rows], axis=-2))"},
    {"jnp.resize", "a, new_shape", R"(
 shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
 flat = jnp.ravel(a)
 total = 1
 for size in shape:
  total = total * size
 if total == 0 or flat.size == 0:
  return jnp.zeros(shape, flat.dtype)
 times = -(-total // flat.size)
 return jnp.tile(flat, times)[:total].reshape(shape))"},
    {"jnp.rollaxis", "a, axis, start=0", R"(
 axis = axis + a.ndim if axis < 0 else axis
 start = start + a.ndim if start < 0 else start
 return jnp.moveaxis(a, axis, start - 1 if start > axis else start))"},
    {"jnp.triu_indices_from", "arr, k=0", R"(
 return jnp.triu_indices(arr.shape[-2], k=k, m=arr.shape[-1]))"},
    {"jnp.tril_indices_from", "arr, k=0", R"(
 return jnp.tril_indices(arr.shape[-2], k=k, m=arr.shape[-1]))"},
    {"jnp.place", "arr, mask, vals, *, inplace=True", R"(
 assert not inplace, 'arrays are not changed in place: say inplace=False'
 vals = jnp.ravel(vals)
 at = jnp.cumsum(jnp.ravel(mask) != 0) - 1
 chosen = jnp.take(vals, jnp.maximum(at, 0) % vals.size).reshape(arr.shape).astype(arr.dtype)
 return jnp.where(mask, chosen, arr))"},
    {"jnp.broadcast_shapes", "*shapes", R"(
 sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
 rank = max([len(s) for s in sizes] + [0])
 sizes = [(1,) * (rank - len(s)) + s for s in sizes]
 out = []
 for d in range(rank):
  wide = [s[d] for s in sizes if s[d] != 1]
  size = wide[0] if len(wide) > 0 else 1
  assert all([w == size for w in wide]), 'the shapes cannot be broadcast together'
  out.append(size)
 return tuple(out))"},
    {"jax.ops.segment_sum", "data, segment_ids, num_segments", R"(
 data = jnp.asarray(data)
 to = jnp.where(segment_ids < 0, num_segments, segment_ids)
 return jnp.zeros((num_segments,) + data.shape[segment_ids.ndim:], data.dtype).at[to].add(data))"},
    {"jnp.linalg.svdvals", "x", R"(
 return jnp.linalg.svd(x, compute_uv=False))"},
};

constexpr LibraryRow kActivations[] = {
    {"nn.hard_silu", "x", R"(
 return x * nn.hard_sigmoid(x))"},
    {"nn.hard_swish", "x", R"(
 return x * nn.hard_sigmoid(x))"},
    {"nn.squareplus", "x, b=4", R"(
 return 0.5 * (x + jnp.sqrt(x * x + b)))"},
    {"nn.sparse_plus", "x", R"(
 return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4)))"},
    {"nn.sparse_sigmoid", "x", R"(
 return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0))"},
    {"nn.log1mexp", "x", R"(
 x = jnp.asarray(x) * 1.0
 out = jnp.where(x < jnp.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))
 return jax._differentiated_as(out, x, 1 / jnp.expm1(x)))"},
    {"nn.identity", "x", R"(
 return jnp.asarray(x))"},
    {"nn.dot_product_attention", "query, key, value, bias=None, mask=None, *, scale=None, is_causal=False", R"(
 assert query.ndim == key.ndim == value.ndim, 'query, key and value have as many dimensions'
 flat = query.ndim == 3
 if flat:
  query, key, value = query[None], key[None], value[None]
 B, T, N, H = query.shape
 S, K = key.shape[1], key.shape[2]
 q = query.reshape(B, T, K, N // K, H)
 scores = jnp.einsum('BTKGH,BSKH->BKGTS', q, key) * (H ** -0.5 if scale is None else scale)
 scores = scores.reshape(B, N, T, S)
 if bias is not None:
  scores = scores + bias
 allowed = jnp.ones((T, S), jnp.bool_)
 if is_causal:
  allowed = jnp.tril(allowed)
 if mask is not None:
  allowed = jnp.logical_and(allowed, mask)
 scores = jnp.where(allowed, scores, -0.7 * jnp.finfo(scores.dtype).max)
 weights = nn.softmax(scores, axis=-1).reshape(B, K, N // K, T, S)
 out = jnp.einsum('BKGTS,BSKH->BTKGH', weights, value).reshape(B, T, N, H)
 return out[0] if flat else out)"},
};

constexpr LibraryRow kLax[] = {
    {"lax.iota", "dtype, size", R"(
 return jnp.arange(size, dtype=dtype))"},
    {"lax.broadcasted_iota", "dtype, shape, dimension", R"(
 shape = tuple(shape)
 line = jnp.arange(shape[dimension], dtype=dtype)
 return jnp.broadcast_to(line.reshape([-1 if d == dimension else 1 for d in range(len(shape))]), shape))"},
    {"lax.slice_in_dim", "operand, start_index, limit_index, stride=1, axis=0", R"(
 where = [slice(None) for d in range(operand.ndim)]
 where[axis] = slice(start_index, limit_index, stride)
 return operand[tuple(where)])"},
    {"lax.slice", "operand, start_indices, limit_indices, strides=None", R"(
 strides = [1 for d in start_indices] if strides is None else strides
 return operand[tuple([slice(a, b, c) for a, b, c in zip(start_indices, limit_indices, strides)])])"},
    {"lax.index_in_dim", "operand, index, axis=0, keepdims=True", R"(
 index = index + operand.shape[axis] if index < 0 else index
 out = lax.slice_in_dim(operand, index, index + 1, axis=axis)
 return out if keepdims else jnp.squeeze(out, axis))"},
    {"lax.broadcast_in_dim", "operand, shape, broadcast_dimensions", R"(
 sizes = [1 for d in shape]
 for i, d in enumerate(broadcast_dimensions):
  sizes[d] = operand.shape[i]
 return jnp.broadcast_to(jnp.reshape(operand, sizes), tuple(shape)))"},
    {"lax.broadcast", "operand, sizes", R"(
 return jnp.broadcast_to(operand, tuple(sizes) + jnp.shape(operand)))"},
    {"lax.argmax", "operand, axis, index_dtype", R"(
 return jnp.argmax(operand, axis=axis).astype(index_dtype))"},
    {"lax.argmin", "operand, axis, index_dtype", R"(
 return jnp.argmin(operand, axis=axis).astype(index_dtype))"},
    {"lax.integer_pow", "x, y", R"(
 return x ** y)"},
    {"lax.convert_element_type", "operand, new_dtype", R"(
 return jnp.asarray(operand).astype(new_dtype))"},
    {"lax.cumprod", "operand, axis=0, reverse=False", R"(
 return jnp.flip(jnp.cumprod(jnp.flip(operand, axis), axis=axis), axis) if reverse else jnp.cumprod(operand, axis=axis))"},
    {"jax.tree.reduce", "function, tree, initializer=None", R"(
 return functools.reduce(function, jax.tree.leaves(tree), initializer))"},
    {"lax.associative_scan", "fn, elems, reverse=False, axis=0", R"(
 assert isinstance(elems, jnp.ndarray), 'associative_scan takes one array here'
 x = jnp.moveaxis(elems, axis, 0)
 x = jnp.flip(x, 0) if reverse else x
 levels = []
 while x.shape[0] > 1:
  levels = levels + [x]
  x = fn(x[:-1:2], x[1::2])
 for level in reversed(levels):
  n = level.shape[0]
  even = level[:1]
  if n > 2:
   even = jnp.concatenate([even, fn(x[:(n - 1) // 2], level[2::2])], axis=0)
  m = x.shape[0]
  pairs = jnp.stack([even[:m], x], axis=1).reshape((2 * m,) + x.shape[1:])
  x = jnp.concatenate([pairs, even[m:]], axis=0) if n % 2 == 1 else pairs
 x = jnp.flip(x, 0) if reverse else x
 return jnp.moveaxis(x, 0, axis))"},
};

// Of results whose length depends on data the caller says how many there are, as in JAX.
constexpr LibraryRow kSets[] = {
    {"jnp.nonzero", "a, *, size=None, fill_value=None", R"(
 assert size is not None, 'nonzero needs size, the number of indices to give: how many there are depends on data'
 a = jnp.atleast_1d(a)
 mask = jnp.ravel(a) != 0
 count = jnp.cumsum(mask)
 flat = jnp.searchsorted(count, jnp.arange(size) + 1)
 fill = 0 if fill_value is None else fill_value
 fills = fill if isinstance(fill, tuple) else [fill for d in range(a.ndim)]
 there = jnp.arange(size) < jnp.sum(mask)
 places = jnp.unravel_index(jnp.minimum(flat, mask.size - 1), a.shape)
 return tuple([jnp.where(there, place, fill).astype(jnp.int32) for place, fill in zip(places, fills)]))"},
    {"jnp.flatnonzero", "a, *, size=None, fill_value=None", R"(
 return jnp.nonzero(jnp.ravel(a), size=size, fill_value=fill_value)[0])"},
    {"jnp.argwhere", "a, *, size=None, fill_value=None", R"(
 return jnp.stack(jnp.nonzero(a, size=size, fill_value=fill_value), axis=1))"},
    {"jnp.union1d", "ar1, ar2, *, size=None, fill_value=None", R"(
 assert size is not None, 'union1d needs size, the number of values to give: how many there are depends on data'
 return jnp.unique(jnp.concatenate([jnp.ravel(ar1), jnp.ravel(ar2)]), size=size, fill_value=fill_value))"},
    {"jnp.unique", "ar, return_index=False, return_inverse=False, return_counts=False, *, size=None, fill_value=None",
     R"(
 assert size is not None, 'unique needs size, the number of values to give: how many there are depends on data'
 shape = jnp.shape(ar)
 a = jnp.ravel(ar)
 order = jnp.argsort(a)
 line = a[order]
 first = jnp.concatenate([jnp.ones(1, jnp.bool_), line[1:] != line[:-1]])
 rank = jnp.cumsum(first) - 1
 count = rank[-1] + 1
 starts = jnp.nonzero(first, size=size, fill_value=0)[0]
 there = jnp.arange(size) < count
 values = jnp.where(there, line[starts], line[0] if fill_value is None else fill_value).astype(a.dtype)
 if not (return_index or return_inverse or return_counts):
  return values
 out = [values]
 if return_index:
  out.append(jnp.where(there, order[starts], order[0]))
 if return_inverse:
  out.append(jnp.zeros_like(rank).at[order].set(rank).reshape(shape))
 if return_counts:
  out.append(jnp.zeros(size, jnp.int32).at[rank].add(1))
 return tuple(out))"},
};

FunctionRow row_of(const LibraryRow& row) {
  const std::string path = row.path;
  const std::string name = path.substr(path.rfind('.') + 1);
  const Syntax syntax = parse_text("def " + name + "(" + row.signature + "):" + row.body + "\n");
  const FunctionRef function = syntax.body.at(0).function;
  return {path, row.signature, [function](Tracer& t, const Arguments& a) {
            CallArguments given;
            for (const FunctionParameter& parameter : function->parameters) {
              const Value& value = a[parameter.name];
              switch (parameter.kind) {
                case ParameterKind::kPositionalOnly:
                case ParameterKind::kPositional:
                  given.positional.push_back(value);
                  break;
                case ParameterKind::kArguments:
                  given.positional.insert(given.positional.end(), value.sequence()->items.begin(),
                                          value.sequence()->items.end());
                  break;
                case ParameterKind::kKeywordOnly:
                  given.keywords.emplace_back(parameter.name, value);
                  break;
                case ParameterKind::kKeywords:
                  for (const auto& item : (*value.as<DictRef>())->items) given.keywords.push_back(item);
                  break;
              }
            }
            const ArrayBuilder::KeptPlace kept(t);
            return t.call(t.user_function(function, t.new_scope(nullptr)), std::move(given));
          }};
}

}  // namespace

std::vector<FunctionRow> library_functions() {
  std::vector<FunctionRow> out;
  const auto add = [&](const auto& rows) {
    for (const LibraryRow& row : rows) out.push_back(row_of(row));
  };
  add(kStatistics);
  add(kSignals);
  add(kElementwise);
  add(kShapes);
  add(kActivations);
  add(kLax);
  add(kSets);
  return out;
}

}  // namespace meshd::numpy
