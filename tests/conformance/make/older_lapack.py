"""Writes the cases of older/: each call of LAPACK as an older JAX prints it. older_lapack.py FOLDER, run with that JAX:
0.4.30 for targets without "_ffi" (the default), 0.4.38 with "trsm" behind the folder for triangular systems with a factor.

Allowed is what rounding leaves of five-by-five matrices: the same routines of another build of LAPACK gave the answers.
"""
import base64
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
RANDOM = np.random.RandomState(7)
COMPARE = {"float32": {"rtol": 2e-4, "atol": 2e-5}, "complex64": {"rtol": 2e-4, "atol": 2e-5},
           "float64": {"rtol": 1e-10, "atol": 1e-11}, "complex128": {"rtol": 1e-10, "atol": 1e-11}}


def matrix(dtype, *shape):
    parts = RANDOM.randn(2, *shape)
    return (parts[0] + 1j * parts[1] if np.issubdtype(dtype, np.complexfloating) else parts[0]).astype(dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def schur_without_phases(x):
    """A column of v may have any phase, and LAPACK's has another one on processors of another kind."""
    t, v = jsl.schur(x)
    return jnp.diagonal(t), jnp.abs(t), v @ t @ adjoint(v)


def cases(dtype, batch):
    square, tall, wide = (matrix(dtype, *batch, *shape) for shape in ((5, 5), (6, 4), (4, 6)))
    hermitian = ((square + adjoint(square)) / 2).astype(dtype)
    definite = (square @ adjoint(square) + 3 * np.eye(5)).astype(dtype)
    yield "potrf", jnp.linalg.cholesky, [definite]
    yield "getrf", lambda x: lax.linalg.lu(x), [tall]
    yield "geqrf_orgqr", lambda x: jnp.linalg.qr(x, mode="complete"), [tall]
    yield "geqrf_wide", lambda x: jnp.linalg.qr(x), [wide]
    yield "syevd", lambda x: lax.linalg.eigh(x, lower=False, symmetrize_input=False), [hermitian]
    yield "gesdd", lambda x: jnp.linalg.svd(x, full_matrices=False), [tall]
    yield "gesdd_full", lambda x: jnp.linalg.svd(x, full_matrices=True), [wide]
    yield "gesdd_values", lambda x: jnp.linalg.svd(x, compute_uv=False), [tall]
    yield "geev", jnp.linalg.eig, [square]
    yield "geev_values", jnp.linalg.eigvals, [square]
    yield from systems(dtype, batch)
    if not batch:
        yield "gees", schur_without_phases, [square]
        yield "gehrd", lambda x: jsl.hessenberg(x, calc_q=True), [square]
        yield "sytrd", lambda x: lax.linalg.tridiagonal(x), [hermitian]


def systems(dtype, batch):
    def solve(lower, transpose, conjugate, left):
        return lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose,
                                                        conjugate_a=conjugate)
    is_complex = np.issubdtype(dtype, np.complexfloating)
    square = matrix(dtype, *batch, 5, 5) + 3 * np.eye(5, dtype=dtype)
    sides = {True: matrix(dtype, *batch, 5, 2), False: matrix(dtype, *batch, 2, 5)}
    for name, lower, transpose, conjugate, left in (("left_lower", True, False, False, True),
                                                    ("right_upper_transposed", False, True, is_complex, False)):
        yield "trsm_" + name, solve(lower, transpose, conjugate, left), [square, sides[left]]


def value(array):
    array = np.ascontiguousarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "base64": base64.b64encode(array.tobytes()).decode()}


def write(folder, name, function, args):
    lowered = jax.jit(function).lower(*args)
    answers = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(lowered.compile()(*args))]
    (folder / f"{name}.mlir").write_text(lowered.as_text())
    case = {"name": name, "arguments": [value(arg) for arg in args],
            "results": [{"value": value(answer), "compare": COMPARE.get(str(answer.dtype), {"exact": True})} for answer in answers],
            "note": f"as JAX {jax.__version__} prints it"}
    (folder / f"{name}.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    version = "jax_" + jax.__version__.replace(".", "_")
    for dtype, batch in ((np.float32, ()), (np.float64, (3,)), (np.complex64, ()), (np.complex128, (2,))):
        for name, function, args in (systems(dtype, ()) if "trsm" in sys.argv[2:] else cases(dtype, batch)):
            write(folder, f"{version}_{name}_{np.dtype(dtype)}", function, args)


main()
