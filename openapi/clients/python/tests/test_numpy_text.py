"""Texts in NumPy syntax, as somebody runs them who has no JAX."""

import ml_dtypes
import numpy as np
import pytest

import meshd

LAYER = """
# a layer
def layer(params, x, scale=1.0):
    y = jnp.tanh(x @ params["w"]) * scale
    log("mean {}", y.mean())
    return {"y": y, "shape": (y.sum(), 3), "none": None}
"""
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.ones((3, 2), np.float32)


@pytest.mark.parametrize("place", [lambda m, x: x, lambda m, x: m.put(x)])
def test_trees_go_in_and_come_out(m, place):
    out = m.run(LAYER, {"w": place(m, W)}, X, scale=2.0)
    assert np.allclose(out["y"], np.tanh(X @ W) * 2)
    assert np.allclose(out["shape"][0], out["y"].sum()) and out["shape"][1] == 3 and out["none"] is None
    (effect,) = m.last_run.effects
    assert effect.name == "mean {}" and np.allclose(effect.values[0], out["y"].mean())


def test_numbers_of_python_are_weak_and_arrays_are_not(m):
    double = "def f(x): return x * 2"
    assert m.run(double, 3).dtype == np.int32 and m.run(double, 1.5) == 3
    assert m.run(double, np.float16(1.5)).dtype == np.float16
    assert m.run(double, np.ones(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    assert m.run("def f(x, y): return x + y", np.ones(2, np.float16), 1.0).dtype == np.float16
    assert m.run("def f(x, mode): return x if mode == 'same' else -x", 1, "other") == -1


def test_large_values_and_handles(m):
    large = np.arange(100_000, dtype=np.float32)
    assert np.array_equal(m.run("def f(x): return x, x[::-1]", large)[1], large[::-1])
    kept = m.run("def f(x): return x + 1", large, keep=True)
    assert isinstance(kept, meshd.Array) and m.run("def f(x): return x[-1]", kept) == 100_000
    assert m.submit("def f(x): return x.sum()", kept.part[:10]).result() == 55
    assert "400,008 bytes at the peak" in m.explain("def f(x): return x.sum()", kept)
    with m.session() as session:
        assert session.run("def f(x, *, by): return x + by", 1, by=2) == 3


def test_mistakes_show_their_line(m):
    with pytest.raises(meshd.InvalidProgram) as raised:
        m.run("def f(x):\n    return jnp.tahn(x)", 1.0)
    assert (raised.value.line, raised.value.column) == (2, 15) and "did you mean 'tanh'?" in str(raised.value)
    with pytest.raises(TypeError, match="got object"):
        m.run("def f(x): return x", object())


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan")])
def test_numbers_that_json_lacks(m, number):
    weak, wide = m.run("def f(d): return d['x'], d['x'] + jnp.ones(2, jnp.bfloat16)", {"x": number})
    np.testing.assert_array_equal(weak, np.float32(number))
    assert weak.dtype == np.float32 and wide.dtype.name == "bfloat16"
