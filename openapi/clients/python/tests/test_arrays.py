"""Handles of stored arrays: data, slices, shards, versions, deletion."""

import copy
import gc
import pickle
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import meshd

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
TYPES = [*"bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()]
TYPES += [
    *"bfloat16 int4 uint4 int2 uint2 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz".split(),
    *"float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn float6_e2m3fn float6_e3m2fn".split(),
]
#: Those that JAX has with jax_enable_x64 only.
WIDE = ["int64", "uint64", "float64", "complex128"]


def of_type(name, shape):
    values = np.resize(np.array([0, 1, 1, 0, 1]), shape)
    return values.astype(getattr(ml_dtypes, name, None) or np.dtype(name))


def abstract(sizes, names):
    return AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))


@pytest.fixture
def a(m):
    return m.put(X)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (7,), (2, 0, 3), (3, 2)], ids=str)
def test_every_dtype_and_rank_comes_back_unchanged(m, name, shape):
    x = of_type(name, shape)
    a = m.put(x, durability="memory")
    back = np.asarray(a)
    assert (a.shape, a.dtype, back.dtype, back.shape) == (shape, x.dtype, x.dtype, x.shape)
    assert back.tobytes() == x.tobytes()
    a.delete()


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", [name for name in TYPES if name not in WIDE])
def test_every_dtype_passes_a_run_unchanged(m, name, large):
    x = of_type(name, (30_000,) if large else (3, 2))
    if name == "float8_e8m0fnu":
        x = np.where(np.asarray(x, np.float32) > 0, 2.0, 0.5).astype(x.dtype)
    got, scalar = m.run(lambda x: (x, x[(0,) * x.ndim]), x)
    assert got.dtype == x.dtype and got.tobytes() == x.tobytes() and scalar.shape == ()


@pytest.mark.parametrize("name", WIDE)
def test_x64(m, name):
    x = of_type(name, (5000,))
    with jax.enable_x64(True):
        got = m.run(lambda x: x + x, x)
    assert got.dtype == x.dtype and np.array_equal(got, x + x)


def test_random_bits_pass_unchanged(m):
    """Bytes that look like the beginning of a file are data."""
    x = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8)
    for start in (b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\r\n--", b""):
        x[: len(start)] = list(start)
        assert np.array_equal(m.run(lambda x: x ^ 0, x), x)


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1], np.s_[-1, 2], np.s_[1:3], np.s_[::2, 1::2, ::-1], np.s_[..., 0], np.s_[:, None, 1], np.s_[2:0:-1],
        np.s_[5:2], np.s_[:, :, -2:], np.s_[1, 2, 3], np.s_[...], np.s_[()], np.s_[None], np.s_[::-2, ..., ::3],
        np.s_[[0, 2]], np.s_[:, [1, 0]], np.s_[np.int64(1)],
    ],
    ids=str,
)  # fmt: skip
def test_indices_are_numpys(a, index):
    got = a[index]
    assert got.shape == X[index].shape and np.array_equal(got, X[index])


def test_a_mask(a):
    assert np.array_equal(a[X > 30], X[X > 30])


@pytest.mark.parametrize("index, error", [(3, IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError)])
def test_wrong_indices(a, index, error):
    with pytest.raises(error):
        a[index]


class Watch:
    """Counts the bytes of bodies that a client receives."""

    def __init__(self, monkeypatch, transport):
        self.requests = []
        exchange = transport._exchange

        def watched(method, target, *rest):
            answer = exchange(method, target, *rest)
            self.requests.append((method, target, answer.status, len(answer.body)))
            return answer

        monkeypatch.setattr(transport, "_exchange", watched)


def test_slices_download_what_they_name(m, monkeypatch):
    a = m.put(np.zeros((1000, 1000), np.float32), durability="memory")
    watch = Watch(monkeypatch, m._transport)
    assert a[10:20, ::100].shape == (10, 10)
    assert [each[3] for each in watch.requests] == [10 * 10 * 4]


def test_data_is_downloaded_once_a_version(m, monkeypatch):
    a = m.put(X)
    watch = Watch(monkeypatch, m._transport)
    np.asarray(a), np.asarray(a)
    assert [each[2:] for each in watch.requests] == [(200, X.nbytes), (304, 0)]
    a[0] = 1
    assert np.asarray(a)[0].sum() == 20 and a.version == 2


@pytest.mark.parametrize("index", [np.s_[1], np.s_[..., ::-1], np.s_[0:2, 1], np.s_[...], np.s_[2, 3, 4]], ids=str)
def test_assignment(m, index):
    a, x = m.put(X), X.copy()
    value = np.random.default_rng(1).standard_normal(x[index].shape).astype(np.float32)
    a[index] = value
    x[index] = value
    assert np.array_equal(np.asarray(a), x)
    a[index] = 3
    x[index] = 3
    assert np.array_equal(np.asarray(a), x)


def test_handles_are_numbers_and_arrays(m):
    a = m.put(np.float32(2.5))
    assert (float(a), int(a), bool(a), a.item(), f"{a:.1f}") == (2.5, 2, True, 2.5, "2.5")
    assert a.ndim == 0 and a.size == 1 and a.nbytes == 4
    b = m.put(X)
    assert len(b) == 3 and [each.shape for each in b] == [(4, 5)] * 3 and b.tolist() == X.tolist()
    assert np.array_equal(jnp.asarray(b) + 1, X + 1) and np.array_equal(np.add(b, 1), X + 1)
    assert np.asarray(b, np.float64).dtype == np.float64
    with pytest.raises(TypeError):
        len(a)


def test_names(m):
    first, second = m.put(X, name="test/names"), m.put(X + 1, name="test/names")
    assert {each.id for each in m.arrays(name="test/names")} == {first.id, second.id}
    assert m.array(name="test/names").id == second.id and m.array(first.id).name == "test/names"
    with pytest.raises(meshd.NotFound):
        m.array(name="test/nobody")


def test_shardings_of_jax(m):
    mesh = abstract((4, 2), ("x", "y"))
    a = m.put(np.arange(48.0, dtype=np.float32).reshape(8, 6), NamedSharding(mesh, P("x", "y")))
    assert a.sharding.spec == ("x", "y") and a.sharding.mesh.shape == (4, 2) and a.sharding.jax.mesh == mesh
    assert a.sharding.jax.shard_shape(a.shape) == (2, 3)
    shard = a.shards[5]
    assert (shard.device, shard.index, shard.shape) == (5, (slice(4, 6), slice(3, 6)), (2, 3))
    assert np.array_equal(shard.data, np.asarray(a)[shard.index])
    b = m.put(np.zeros((8, 6), np.float32), NamedSharding(mesh, P(("y", "x"))))
    assert b.sharding.spec == (("y", "x"), None) and {each.replica_id for each in b.shards} == {0}
    assert m.put(X, NamedSharding(mesh, P())).sharding.spec == (None, None, None)


def test_shardings_of_ones_own(m):
    mesh = m.mesh((2, 2), ("a", "b"), devices=[7, 6, 5, 4])
    a = m.put(np.arange(7.0), mesh.sharding("a"))
    assert [each.device for each in a.shards] == [7, 6, 5, 4] and a.shards[3].data.tolist() == [4, 5, 6]
    assert a.sharding.mesh.device_ids == (7, 6, 5, 4) and "a=2" in repr(a.sharding)
    b = a.reshard(mesh.sharding(("a", "b")))
    assert np.array_equal(b, a) and b.sharding.spec == (("a", "b"),)


def test_typed_keys_are_kept(m):
    keys = jax.random.split(jax.random.key(3), 4)
    a = m.put(keys)
    assert a.shape == (4, 2) and a.dtype == np.uint32
    got = m.run(jax.vmap(jax.random.bits), a)
    assert np.array_equal(got, jax.vmap(jax.random.bits)(keys))
    more = m.run(lambda k: jax.random.split(k), jax.random.key(1), keep=True)
    assert isinstance(more, meshd.Array)
    assert np.array_equal(
        m.run(lambda k: jax.random.bits(k[0]), more), jax.random.bits(jax.random.split(jax.random.key(1))[0])
    )


def test_parts_are_arguments(m, a):
    assert np.array_equal(m.run(lambda x: x * 2, a.part[1:, ::2]), X[1:, ::2] * 2)
    with pytest.raises(IndexError):
        a.part[::-1]


def test_deleted_handles(m, a):
    assert not a.is_deleted()
    a.delete()
    assert a.is_deleted() and "deleted" in repr(a) and "deleted" in a._repr_html_()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(a)
    with pytest.raises(RuntimeError, match="deleted"):
        m.run(lambda x: x, a)
    with pytest.raises(meshd.NotFound):
        m.array(a.id)


def test_pictures(m):
    a = m.put(np.zeros((8, 6), np.float32), m.mesh((4, 2), ("x", "y")).sharding("x", "y"))
    picture = a._repr_html_()
    assert "<svg" in picture and "P(&#x27;x&#x27;, &#x27;y&#x27;)" in picture and a.id in picture
    assert "| 6 | 7 |" in a.visualize()
    assert "whole on device 0" in m.put(X)._repr_html_()


def test_durability(m):
    assert m.put(X).durability == "durable" and m.put(X, durability="memory").durability == "memory"
    assert m.run(lambda: jnp.ones(3), keep=True).durability == "memory"
    assert m.run(lambda: jnp.ones(3), keep="durable").durability == "durable"
    with pytest.raises(ValueError, match="keep"):
        m.run(lambda: jnp.ones(3), keep="forever")


def test_wide_arrays_need_a_wide_jax(m):
    a = m.put(np.arange(3))
    with pytest.raises(TypeError, match="jax_enable_x64"):
        m.run(lambda x: x + 1, a)
    with jax.enable_x64(True):
        assert m.run(lambda x: x + 1, a).tolist() == [1, 2, 3]


def test_dtypes_that_no_server_has(m):
    for wrong in (np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError, match="dtype"):
            m.put(wrong)


def ids(m):
    return {each.id for each in m.arrays()}


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_results_are_freed_with_their_handles(m):
    kept = m.run(lambda: jnp.ones(3), keep=True)
    durable = m.run(lambda: jnp.ones(3), keep="durable")
    left = m.run(lambda: jnp.ones(3), keep=True)
    put = m.put(X, durability="memory")
    kept_id, rest = kept.id, {durable.id, left.detach(), put.id}
    assert {kept_id, *rest} <= ids(m)
    part = kept.part[1:]
    del kept, durable, left, put
    time.sleep(0.1)
    assert kept_id in ids(m), "a part of it is still there"
    del part
    until(lambda: kept_id not in ids(m))
    assert rest <= ids(m)


def test_a_loop_leaves_nothing(m):
    """Neither results that are dropped nor what is left of donated ones."""
    gc.collect()
    before = ids(m)
    step = m.jit(lambda x: (x + 1, x.sum()), donate_argnums=0, keep=True)
    x, total = step(np.zeros(3, np.float32))
    for _ in range(20):
        x, total = step(x)
    assert float(total) == 60
    until(lambda: ids(m) - before == {x.id, total.id})


def test_arrays_that_a_job_reads_are_freed_after_it(m):
    x = m.run(lambda: jnp.ones(4096), keep=True)
    identity = x.id
    job = m.submit(lambda x: jax.lax.fori_loop(0, 20000, lambda i, v: jnp.sin(v) + 1, x).sum(), x)
    del x
    assert job.result() > 0
    del job
    until(lambda: identity not in ids(m))


def test_trees_of_handles_are_downloaded(m):
    tree = m.run(lambda: {"a": jnp.ones(3), "b": [jnp.zeros(2), None]}, keep=True)
    home = jax.device_get(tree)
    assert home["a"].tolist() == [1, 1, 1] and home["b"][0].tolist() == [0, 0] and home["b"][1] is None


def test_the_end_of_the_process_frees_what_it_kept(m, server):
    script = """
import sys, jax, jax.numpy as jnp, numpy as np, meshd
m = meshd.connect(sys.argv[1])
kept = m.run(lambda: jnp.ones(3), keep=True)
left = m.run(lambda: jnp.ones(3), keep=True).detach()
assert m.run(lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((), jnp.float32), x), 1.0) == 1
print(kept.id, left, m._shared.callback_session)
"""
    done = subprocess.run([sys.executable, "-c", script, server.url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    kept, left, session = done.stdout.split()
    assert kept not in ids(m) and left in ids(m)
    with pytest.raises(meshd.NotFound):
        m.session(id=session)


def test_handles_are_asked_like_arrays_of_jax(m):
    a = m.put(X, durability="memory")
    assert a.itemsize == 4 and a.block_until_ready() is a
    assert complex(m.put(1j)) == 1j and list(range(m.put(np.int32(3)))) == [0, 1, 2]
    with pytest.raises(TypeError, match="integer"):
        range(m.put(np.float32(3)))
    assert not hasattr(a, "sum") and not hasattr(a, "no_such_thing")
    with pytest.raises(AttributeError, match=r"m.run\(lambda x: x.sum\(\), a\)"):
        a.sum()
    with pytest.raises(AttributeError, match=r"lambda x: x.T, a"):
        a.T  # noqa: B018
    with pytest.raises(AttributeError, match="^'Array' object has no attribute 'smu'$"):
        a.smu()


def test_copies_of_handles(m):
    kept = m.run(lambda x: x * 2, m.put(X, m.mesh(2, "x").sharding("x")), keep=True)
    again, deep = copy.copy(kept), copy.deepcopy({"w": kept})["w"]
    assert again is kept and deep.id != kept.id and deep.durability == "memory"
    assert deep.sharding == kept.sharding
    deep[0] = 0
    np.testing.assert_array_equal(np.asarray(again), X * 2)
    gone = deep.id
    del deep
    until(lambda: gone not in ids(m))
    durable = copy.deepcopy(m.put(jax.random.key(3)))
    assert durable.durability == "durable"
    assert float(m.run(jax.random.uniform, durable)) == float(jax.random.uniform(jax.random.key(3)))
    durable.delete()


def test_what_is_of_this_process_is_not_pickled(m):
    with pytest.raises(TypeError, match="a.id"):
        pickle.dumps(m.put(X))
    for each in (m, m.submit(jnp.sin, 1.0), m.session()):
        with pytest.raises(TypeError, match="connect"):
            pickle.dumps(each)


def test_meshes_and_shardings_as_jax_names_them(m):
    assert m.mesh(8, "data") == m.mesh((8,), ("data",))
    typed = m.mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    assert typed.axis_types == ("auto", "explicit") and typed.jax.axis_types == (AxisType.Auto, AxisType.Explicit)
    assert m.mesh(1, "x", jax.devices()[:1]).device_ids == (0,)
    assert m.mesh(2, "x", m.devices()[4:6]).device_ids == (4, 5)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    with jax.sharding.use_abstract_mesh(m.mesh((4, 2), ("x", "y")).jax):
        a = m.put(x, P("x"))
    assert a.sharding.spec == ("x", None)
    moved = a.reshard(P(None, "y"))
    assert moved.sharding.spec == (None, "y") and moved.sharding.mesh.shape == (4, 2)
    np.testing.assert_array_equal(np.asarray(moved), x)
    with pytest.raises(TypeError, match="needs a mesh"):
        m.put(x, P("x"))
    with pytest.raises(TypeError, match="name="):
        m.put(x, "weights")
    with pytest.raises(ValueError, match="name='weights'"):
        m.array("weights")
