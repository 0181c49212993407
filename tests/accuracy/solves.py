"""Solutions and factorisations: residuals in long double, relative to the size of the problem and to epsilon; at most twice XLA's."""
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg  # noqa: F401  (jax.scipy.linalg's own dependency)
from compared import Table, meshd
from functions import PART, limits_of
from sums import wide

KNOWN = {
}
MARGIN = 2
RANDOM = np.random.RandomState(11)
TYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = (5, 40, 150)


def size(x):
    return np.sqrt((np.abs(wide(x)) ** 2).sum())


def adjoint(x):
    return wide(x).conj().T


def apart(found, wanted):
    return size(wide(found) - wanted) / size(wanted)


def off_unit(q):
    """How far the columns of q are from orthonormal ones."""
    return size(adjoint(q) @ wide(q) - np.eye(q.shape[1])) / np.sqrt(q.shape[1])


def backward(a, x, b):
    return size(wide(a) @ wide(x) - wide(b)) / (size(a) * size(x) + size(b))


def lower(a):
    return np.tril(a) + a.shape[0] * np.eye(a.shape[0], dtype=a.dtype)


def hermitian(a):
    return (a + a.conj().T) / 2


def positive(a):
    return (a @ a.conj().T + a.shape[0] * np.eye(a.shape[0])).astype(a.dtype)


def lu_residual(a, lu, _, permutation):
    n = a.shape[0]
    return apart((np.tril(wide(lu), -1) + np.eye(n)) @ np.triu(wide(lu)), wide(a)[permutation])


def eig_residual(a, w, v):
    return size(wide(a) @ wide(v) - wide(v) * wide(w)) / (size(a) * size(v))


# name: the function, from what matrix, and the residuals of its results
ROWS = {
    "triangular_solve": (lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True), lower,
                         lambda a, b, x: [backward(a, x, b)]),
    "solve": (jnp.linalg.solve, lambda a: a, lambda a, b, x: [backward(a, x, b)]),
    "solve, positive definite": (lambda a, b: jax.scipy.linalg.solve(a, b, assume_a="pos"), positive, lambda a, b, x: [backward(a, x, b)]),
    "inverse": (jnp.linalg.inv, lambda a: a, lambda a, x: [size(wide(a) @ wide(x) - np.eye(len(a))) / (size(a) * size(x))]),
    "cholesky": (jnp.linalg.cholesky, positive, lambda a, c: [apart(wide(c) @ adjoint(c), wide(a))]),
    "lu": (jax.lax.linalg.lu, lambda a: a, lambda a, *r: [lu_residual(a, *r)]),
    "qr": (jnp.linalg.qr, lambda a: a, lambda a, q, r: [apart(wide(q) @ wide(r), wide(a)), off_unit(q)]),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), lambda a: a,
            lambda a, u, s, v: [apart(wide(u) * wide(s) @ wide(v), wide(a)), off_unit(u), off_unit(v.T)]),
    "eigh": (jnp.linalg.eigh, hermitian, lambda a, w, v: [eig_residual(a, w, v), off_unit(v)]),
    "eig": (jnp.linalg.eig, lambda a: a, lambda a, w, v: [eig_residual(a, w, v)]),
    "schur": (jax.scipy.linalg.schur, lambda a: a, lambda a, t, q: [apart(wide(q) @ wide(t) @ adjoint(q), wide(a)), off_unit(q)]),
    "hessenberg": (lambda a: jax.scipy.linalg.hessenberg(a, calc_q=True), lambda a: a,
                   lambda a, h, q: [apart(wide(q) @ wide(h) @ adjoint(q), wide(a)), off_unit(q)]),
    "tridiagonal_solve": (lambda d, b: jax.lax.linalg.tridiagonal_solve(d[0], d[1], d[2], b), None, None),
}


def tridiagonal(n, dtype):
    d = RANDOM.randn(3, n).astype(dtype)
    d[1] += 4
    d[0, 0] = d[2, -1] = 0
    return d, RANDOM.randn(n, 3).astype(dtype), np.diag(d[1]) + np.diag(d[0, 1:], -1) + np.diag(d[2, :-1], 1)


def problem(name, n, dtype):
    """Arguments of the program, and the residuals of its results."""
    _, matrix, residuals = ROWS[name]
    if matrix is None:
        d, b, dense = tridiagonal(n, dtype)
        return [d, b], lambda x: [backward(dense, x, b)]
    a, b = (RANDOM.randn(n, m) + (1j * RANDOM.randn(n, m) if dtype.name in PART else 0) for m in (n, 3))
    args = [np.ascontiguousarray(matrix(a).astype(dtype))]
    if "solve" in name:
        args.append(b.astype(dtype))
    return args, lambda *results: residuals(*args, *results)


def row(url, table, name, dtype):
    eps, ours, theirs = float(limits_of(dtype).eps), [], []
    for n in SIZES:
        for _ in range(4):
            args, residuals = problem(name, n, dtype)
            jitted = jax.jit(ROWS[name][0])
            ours += [r / eps for r in residuals(*meshd(url, jitted.lower(*args).as_text(), args))]
            theirs += [r / eps for r in residuals(*map(np.asarray, jax.tree.leaves(jitted(*args))))]
    table.add(name, dtype.name, ours, theirs)


def check(url, word):
    table = Table("epsilons", KNOWN, MARGIN)
    for name in ROWS:
        for dtype in TYPES:
            if word in name:
                row(url, table, name, np.dtype(dtype))
    return table.finish()
