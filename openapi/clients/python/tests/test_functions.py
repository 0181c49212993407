"""What JAX gives in the process is what the server gives, for functions of many kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import programs
import pytest
from functions import ROWS

import meshd


def is_key(leaf):
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def in_process(function, args, kwargs):
    """JAX's own answer."""
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return jitted(*args, **kwargs)


def same(got, expected):
    """Equal trees, types and shapes; exact types to the bit, floats within a tolerance of their width."""
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        if is_key(other):
            assert is_key(one) and one.dtype == other.dtype
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        if other.dtype.kind in "fc" and other.dtype.itemsize >= 2:
            tolerance = 2e-3 if other.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        elif other.dtype.kind == "V" and other.dtype.names is None and other.dtype.itemsize == 2:  # bfloat16
            np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), rtol=1e-2, atol=1e-2)
        else:
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name, function, args, kwargs", ROWS, ids=[each[0] for each in ROWS])
@pytest.mark.filterwarnings("ignore:.*not usable:UserWarning", "ignore:.*requested in .*:UserWarning")
def test_function(m, name, function, args, kwargs):
    # The server first: JAX in the process may consume donated arguments.
    got = m.run(function, *args, **kwargs)
    same(got, in_process(function, args, kwargs))


@pytest.mark.parametrize("name, function, args, kwargs", programs.ROWS, ids=[each[0] for each in programs.ROWS])
@pytest.mark.filterwarnings("ignore:.*requested in .*:UserWarning")
def test_program(m, name, function, args, kwargs):
    same(m.run(function, *args, **kwargs), in_process(function, args, kwargs))


@pytest.mark.filterwarnings("ignore:.*requested in .*:UserWarning")
def test_results_that_stay_on_the_server_are_the_same(m):
    for _, function, args, kwargs in ROWS[:45:4]:
        got = jax.tree.map(
            np.asarray, m.run(function, *args, keep=True, **kwargs), is_leaf=lambda x: isinstance(x, meshd.Array)
        )
        same(got, jax.tree.map(np.asarray, in_process(function, args, kwargs)))


def test_there_are_many():
    assert len(ROWS) >= 80 and len(programs.ROWS) >= 58


def test_more_arguments_than_a_form_has_parts(m):
    tree = {str(n): np.full((20, 20), n, np.float32) for n in range(1200)}
    tree["int4"] = np.ones(3000, jnp.int4)
    got = m.run(lambda t: jax.tree.map(lambda x: x + x, t), tree)
    same(got, {name: value + value for name, value in tree.items()})
