"""What jax.export and MLIR give as bytes runs, also without JAX; exports for several devices run on the server's."""

import io
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from test_functions import same

import meshd

export = pytest.importorskip("jax.export")
R = np.random.default_rng(3)
X = R.standard_normal((4, 3)).astype(np.float32)
W = R.standard_normal((3, 2)).astype(np.float32)


def layer(params, x, *, scale):
    return {"y": jnp.tanh(x @ params["w"]) * scale, "nothing": None, "pair": (x, [x.sum()])}


@pytest.fixture(scope="module")
def data():
    pytest.importorskip("flatbuffers", reason="jax.export writes with it")
    return bytes(export.export(jax.jit(layer))({"w": W, "unused": X}, X, scale=2.0).serialize())


def test_bytes_of_an_export_run_with_the_trees_of_the_function(m, data):
    want = jax.jit(layer)({"w": W, "unused": X}, X, scale=2.0)
    arguments = {"w": W, "unused": X}, X.astype(np.float64)
    want = jax.tree.map(np.asarray, want)
    got = m.run(data, *arguments, scale=2.0)
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-6)
    assert got["nothing"] is None and got["y"].dtype == np.float32 and got["pair"][0].tolist() == X.tolist()
    kept = m.run(bytearray(data), {"w": m.put(W), "unused": X}, X, scale=2.0, keep=True)
    assert isinstance(kept["y"], meshd.Array)
    np.testing.assert_allclose(np.asarray(kept["y"]), want["y"], rtol=1e-6)
    np.testing.assert_allclose(m.submit(data, *arguments, scale=2.0).result()["y"], want["y"], rtol=1e-6)
    assert "argument 0" in m.explain(data, *arguments, scale=2.0)


def test_mistakes_name_the_argument(m, data):
    with pytest.raises(TypeError, match=r"argument 0 is a dict of \['unused', 'w'\], got ndarray"):
        m.run(data, W, X, scale=1.0)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        m.run(data, {"w": W, "unused": X}, X)
    with pytest.raises(TypeError, match=r"float32\[3,2\], got shape \(2, 3\)"):
        m.run(data, {"w": W.T, "unused": X}, X, scale=1.0)
    with pytest.raises(meshd.Error, match="column 1"):
        m.run(b"hello", 1)


def test_symbolic_shapes(m):
    pytest.importorskip("flatbuffers")
    f = jax.jit(lambda x: (x.sum(0), x * 2))
    data = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), np.float32)).serialize()
    for rows in (2, 5):
        x = R.standard_normal((rows, 3)).astype(np.float32)
        same(m.run(data, x), f(x))


def test_bytecode(m):
    f = jax.jit(lambda x: jnp.sin(x) @ x.T)
    file = io.BytesIO()
    f.lower(X).compiler_ir().operation.write_bytecode(file)
    same(m.run(file.getvalue(), X), f(X))


def test_an_export_for_more_devices_than_are_here(m):
    mesh = AbstractMesh((8,), ("d",))
    rows, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
    x = R.standard_normal((16, 4)).astype(np.float32)

    def f(tree, unused):
        return {"sum": tree["x"].sum(0) * 2}

    exported = export.export(jax.jit(f, in_shardings=(rows, whole)), platforms=["cpu"])(
        {"x": jax.ShapeDtypeStruct(x.shape, x.dtype)}, jax.ShapeDtypeStruct((3,), np.int32)
    )
    assert exported.nr_devices == 8 > len(jax.devices())
    for _ in range(2):
        got = m.run(exported, {"x": x}, np.zeros(3, np.int32))
        np.testing.assert_allclose(got["sum"], x.sum(0) * 2, rtol=1e-5)
    assert m.last_run.shardings["arguments"][0]["spec"] == [["d"], []]
    with pytest.raises(TypeError, match="exported for the arguments"):
        m.run(exported, x, np.zeros(3, np.int32))


def test_bytes_run_where_jax_is_not(server, data, tmp_path):
    file = tmp_path / "f.bin"
    file.write_bytes(data)
    script = """
import sys
sys.modules["jax"] = None
import meshd, numpy as np
m = meshd.connect(sys.argv[1])
x = np.ones((4, 3))
out = m.run(open(sys.argv[2], "rb").read(), {"w": np.ones((3, 2)), "unused": x}, x, scale=2.0)
print(out["y"].shape, out["nothing"])
for wrong in (lambda: m.run(lambda x: x, 1), lambda: m.jit(lambda x: x)):
    try:
        wrong()
    except ModuleNotFoundError as error:
        print("jax==0.10.2" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, server.url, str(file)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["(4, 2) None", "True", "True"], done.stderr
