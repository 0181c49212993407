"""Names, prefixes and checkpoints; uploads whose connection is lost."""

import socket
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_functions import same as same_keys

import meshd
from meshd import _uploads

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Layer(NamedTuple):
    w: object
    b: object


def same(got, want):
    """The same tree, types and bits."""
    assert jax.tree_util.tree_structure(got) == jax.tree_util.tree_structure(want)
    for one, other in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def test_a_name_addresses_an_array(m):
    first = m.put(X, name="names/a b/w")
    assert m.by_name("names/a b/w").id == first.id
    second = m.put(2 * X, name="names/a b/w")
    assert m.by_name("names/a b/w").id == second.id == m.array(name="names/a b/w").id
    np.testing.assert_array_equal(m.by_name("names/a b/w"), 2 * X)
    held = m.put(X, name="names/x/data", unique=True)
    assert m.by_name("names/x/data").id == held.id
    with pytest.raises(meshd.NameTaken, match=held.id):
        m.put(X, name="names/x/data")
    with pytest.raises(meshd.NotFound):
        m.by_name("names/x")
    assert {each.name for each in m.arrays(prefix="names/")} == {"names/a b/w", "names/x/data"}
    assert sorted(m.export("names/")) == ["a b/w", "x/data"]
    assert m.delete("names/") == 3 and m.delete("names/") == 0


TREES = {
    "a dict": {"w": X, "b": np.float32(3), "deep": {"x": X.astype(ml_dtypes.bfloat16), "none": None, "empty": {}}},
    "a list": [X, (np.int32(1), [X[0], X[1]]), ()],
    "a leaf": X,
    "odd keys": {"a/b": X, "%": X, "": X[0], "ä ö": X[1], "__tree__x": X},
    "odd types": {
        "i": np.arange(-8, 8).astype(ml_dtypes.int4),
        "c": X.astype(np.complex128),
        "f": X.astype(ml_dtypes.float8_e3m4),
        "b": X > 2,
    },
    "float8": {
        name: np.arange(5).astype(getattr(ml_dtypes, name))
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu")
    },
    "of jax": {"w": jnp.ones((2, 2), jnp.bfloat16), "k": jnp.arange(3)},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_checkpoint_comes_back_as_it_was(m, tree):
    m.save("check/point", tree)
    same(m.load("check/point"), tree)
    same(m.load("check/point/", like=tree), tree)
    kept = m.load("check/point", keep=True)
    assert all(isinstance(leaf, meshd.Array) for leaf in jax.tree_util.tree_leaves(kept))
    same(kept, tree)
    assert m.delete("check/") == len(jax.tree_util.tree_leaves(tree)) + 1


def test_a_checkpoint_of_classes_is_read_by_one_that_is_like_it(m):
    tree = {"layers": [Layer(X, None), Layer(X + 1, X[0])]}
    m.save("classes", tree)
    same(m.load("classes", like=jax.tree_util.tree_map(lambda x: x * 0, tree)), tree)
    with pytest.raises(TypeError, match="like="):
        m.load("classes")
    m.delete("classes/")


def test_a_checkpoint_replaces_the_one_before(m):
    m.save("again", {"a": X, "b": X})
    m.save("again", {"a": X[0], "c": X})
    same(m.load("again"), {"a": X[0], "c": X})
    assert {each.name for each in m.arrays(prefix="again/")} == {"again/a", "again/c", "again/__tree__"}
    with pytest.raises(KeyError, match="'b'"):
        m.load("again", like={"b": X})
    m.delete("again/")
    with pytest.raises(meshd.NotFound):
        m.load("again")
    with pytest.raises(meshd.NotFound):
        m.load("again", keep=True)


def test_kept_checkpoints_are_arguments_of_runs(m):
    m.save("run", {"w": X, "x": X.T})
    tree = m.load("run", keep=True)
    np.testing.assert_array_equal(m.run(lambda t: t["w"] @ t["x"], tree), X @ X.T)
    m.delete("run/")


class Wire:
    """Passes bytes to a server; ends each of the next connections after so many bytes of the client."""

    def __init__(self, port, cuts):
        self.port, self.cuts, self.ended = port, list(cuts), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.port))
        threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
        count = 0
        while data := self.receive(client):
            count += len(data)
            if count > 1 << 20 and self.cuts and count > self.cuts[0]:
                self.cuts.pop(0)
                self.ended += 1
                break
            try:
                server.sendall(data)
            except OSError:
                break
        for each in (server, client):
            each.close()

    def pump(self, source, target):
        while data := self.receive(source):
            try:
                target.sendall(data)
            except OSError:
                return

    @staticmethod
    def receive(source):
        try:
            return source.recv(1 << 16)
        except OSError:
            return b""


def test_uploads_go_on_where_the_connection_was_lost(server, monkeypatch):
    monkeypatch.setattr(_uploads, "RESUMED_BYTES", 1 << 20)
    x = np.random.default_rng(1).integers(0, 255, (4, 5 << 20), np.uint8)
    wire = Wire(server.port, [3 << 20, 7 << 20, 2 << 20])
    with meshd.connect(wire.url) as m:
        a = m.put(x, name="resumed")
        assert wire.ended == 3
        np.testing.assert_array_equal(a, x)
        wire.cuts = [4 << 20]
        m.save("resumed/tree", {"x": x})
        assert wire.ended == 4
        same(m.load("resumed/tree"), {"x": x})
        m.delete("resumed")
    wire.listener.close()


def test_uploads_go_on_after_a_restart(own_server, monkeypatch):
    monkeypatch.setattr(_uploads, "RESUMED_BYTES", 1 << 20)
    x = np.random.default_rng(2).integers(0, 255, 200 << 20, np.uint8)
    with meshd.connect(own_server.url, retries=8) as m:
        killer = threading.Timer(0.15, own_server.restart)
        killer.start()
        a = m.put(x)
        killer.join()
        np.testing.assert_array_equal(a, x)


def test_uploads_end_when_nothing_gets_on(server, monkeypatch):
    monkeypatch.setattr(_uploads, "RESUMED_BYTES", 1 << 20)
    wire = Wire(server.port, [1 << 20] * 100)
    with meshd.connect(wire.url, retries=1) as m:
        wire.cuts = [0] * 100
        monkeypatch.setattr(Wire, "serve", lambda self, client: client.close())
        with pytest.raises(meshd.ConnectionFailed):
            m.put(np.zeros(4 << 20, np.uint8))
    wire.listener.close()


def test_typed_keys_of_a_checkpoint_are_keys(m):
    tree = {"key": jax.random.key(3), "many": [jax.random.split(jax.random.key(1, impl="rbg"), 3)], "w": X}
    m.save("keys", tree)
    same_keys(m.load("keys"), tree)
    same_keys(m.load("keys", like=tree), tree)
    kept = m.load("keys", keep=True)
    assert isinstance(kept["key"], meshd.Array)
    draw = lambda t: jax.random.normal(t["key"], (3,)) + jax.random.uniform(t["many"][0][1])  # noqa: E731
    same_keys(m.run(draw, kept), draw(tree))
    m.save("keys", kept)
    same_keys(m.load("keys"), tree)
    state = Layer(jax.random.key(5), X)
    m.save("keys", state)
    same_keys(m.load("keys", like=state), state)
    m.delete("keys/")


def test_leaves_that_are_no_arrays_are_named(m):
    with pytest.raises(TypeError, match="'layers/0/name' of the checkpoint .str"):
        m.save("wrong", {"layers": [{"name": "dense", "w": X}]})
