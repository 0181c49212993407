"""m.jit, donation, shardings of arguments and results, options."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from test_arrays import Watch

import meshd

F = np.arange(24, dtype=np.float32).reshape(4, 6)
AUTO = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def test_programs_are_lowered_and_posted_once_for_each_types(m, monkeypatch):
    traced = []

    @m.jit
    def f(x, y):
        traced.append(x.shape)
        return x * 2 + y

    watch = Watch(monkeypatch, m._transport)
    for _ in range(3):
        assert np.array_equal(f(F, 1.0), F * 2 + 1)
    assert np.array_equal(f(F[0], y=1.0), F[0] * 2 + 1)
    assert traced == [(4, 6), (6,)]
    sent = [target for method, target, *_ in watch.requests]
    assert sent == ["/v1/programs", "/v1/run", "/v1/run", "/v1/run", "/v1/programs", "/v1/run"]


def test_run_lowers_once_too(m):
    before = m._shared.lowerings.count
    f = lambda x: x + 1  # noqa: E731
    for n in range(3):
        assert m.run(f, F + n)[0, 0] == n + 1
    assert m._shared.lowerings.count == before + 1
    m.run(f, np.float64(3))
    with jax.enable_x64(True):
        assert m.run(f, np.float64(3)).dtype == np.float64, "the configuration is part of the key"
    assert m._shared.lowerings.count == before + 3


def test_functions_are_not_kept_alive(m):
    import gc
    import weakref

    def f(x):
        return x + 1

    m.run(f, 1)
    gone = weakref.ref(f)
    del f
    jax.clear_caches()
    gc.collect()
    assert gone() is None


def test_options_of_jit_are_passed_on(m):
    @m.jit(static_argnums=1, static_argnames="mode")
    def f(x, n, *, mode):
        return x**n if mode == "power" else x

    assert np.array_equal(f(F, 2, mode="power"), F**2)
    assert np.array_equal(f(F, 3, mode="power"), F**3)
    assert np.array_equal(f(F, 3, mode="other"), F)
    with pytest.raises(ValueError, match="[hH]ash"):
        f(F, [1], mode="power")


def test_jitted_functions_look_like_the_function(m):
    @m.jit
    def named(x):
        """Doubles."""
        return x * 2

    assert named.__name__ == "named" and named.__doc__ == "Doubles." and "named" in repr(named)
    assert "stablehlo.multiply" in named.program(F).text and "multiply" in named.explain(F)
    assert np.array_equal(named.jitted(F), F * 2), "JAX's own runs here"


def test_donated_handles_are_deleted(m):
    @m.jit(donate_argnums=0, keep=True)
    def step(state, x):
        return jax.tree.map(lambda a: a + x, state)

    state = {"w": m.put(F), "b": np.zeros(3, np.float32)}
    old = state["w"]
    state = step(state, 1.0)
    assert old.is_deleted() and "donated" in repr(old)
    with pytest.raises(RuntimeError, match="donated"):
        np.asarray(old)
    middle = state
    state = step(state, 2.0)
    assert middle["w"].is_deleted() and middle["b"].is_deleted()
    assert np.array_equal(state["w"], F + 3) and state["b"].tolist() == [3, 3, 3]


def test_donations_that_jax_cannot_use_leave_the_array(m):
    a = m.put(F)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert m.run(jax.jit(lambda x: x.sum(), donate_argnums=0), a) == F.sum()
    assert not a.is_deleted() and np.array_equal(a, F)


def test_a_failed_run_donates_nothing(m):
    a = m.put(F)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    with pytest.raises(meshd.Error):
        m.using(mesh={"axis_names": ["x"], "devices": [77]}).run(step, a)
    assert not a.is_deleted() and np.array_equal(m.run(step, a), F + 1)


def test_shardings_of_arguments_lie_on_the_servers_devices(m):
    """The client has one device, the program eight."""
    assert jax.device_count() == 1
    a = m.put(np.ones((8, 6), np.float32), NamedSharding(AUTO, P("x", "y")))
    b = m.run(lambda a: a.T @ a, a, keep=True)
    assert np.array_equal(b, np.full((6, 6), 8.0))
    assert m.last_run.shardings["arguments"][0]["spec"] == [["x"], ["y"]]
    assert b.sharding.mesh.shape == (4, 2)


def test_in_and_out_shardings(m):
    f = m.jit(
        lambda a, b: (a @ b, b),
        in_shardings=(NamedSharding(AUTO, P("x", None)), NamedSharding(AUTO, P(None, "y"))),
        out_shardings=(NamedSharding(AUTO, P("x", "y")), NamedSharding(AUTO, P())),
        keep=True,
    )
    a, b = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones((4, 6), np.float32)
    product, same = f(a, b)
    assert np.array_equal(product, a @ b) and np.array_equal(same, b)
    assert product.sharding.spec == ("x", "y") and same.sharding.spec == (None, None)
    assert product.sharding.jax == NamedSharding(AUTO, P("x", "y"))
    assert f(product[:, :4], b)[0].shape == (8, 6)


def test_constraints_and_the_mesh_in_context(m):
    def f(x):
        return jax.lax.with_sharding_constraint(x * 2, P("y", "x"))

    with jax.sharding.use_abstract_mesh(AUTO):
        b = m.run(f, np.ones((4, 8), np.float32), keep=True)
    assert b.sharding.spec == ("y", "x") and np.array_equal(b, np.full((4, 8), 2.0))


def test_explicit_axes(m):
    """Types of arrays have their sharding: results go back in as what they came out as."""
    seen = []

    @m.jit(keep=True)
    def f(x):
        seen.append(str(jax.typeof(x)))
        return x + 1

    a = m.put(np.zeros((8, 4), np.float32), NamedSharding(EXPLICIT, P("x", None)))
    with jax.sharding.use_abstract_mesh(EXPLICIT):
        b = f(f(a))
    assert seen == ["float32[8@x,4]"] and b.tolist() == np.full((8, 4), 2.0).tolist()


def test_shard_map(m):
    def f(x):
        return jax.lax.psum(x, "x") + jax.lax.axis_index("y")

    spec = P("x", "y")
    mapped = jax.shard_map(f, mesh=AUTO, in_specs=spec, out_specs=P(None, "y"))
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = np.tile(x.sum(0), (1, 1)) + np.array([0, 0, 1, 1])
    assert np.array_equal(m.run(mapped, x), expected)


def test_uneven_arrays(m):
    a = m.put(np.arange(7, dtype=np.float32), NamedSharding(AUTO, P("x")))
    assert m.run(lambda x: x.sum(), a) == 21, "what JAX refuses the server does"


def test_devices_of_a_mesh_are_the_servers(m):
    mesh = m.mesh((4,), ("x",), devices=[6, 4, 2, 0])
    a = m.put(np.arange(8, dtype=np.float32), mesh.sharding("x"))
    b = m.run(lambda x: x * 2, a, keep=True)
    assert [each.device for each in b.shards] == [6, 4, 2, 0] and np.array_equal(b, np.arange(8) * 2.0)


def test_options_of_runs(m):
    assert m.using(profile=True).run(lambda x: x @ x, np.ones((8, 8), np.float32))[0, 0] == 8
    assert m.last_run.profile["steps"] and m.last_run.statistics["steps"] >= 1 and m.last_run.timing["total"] > 0
    with pytest.raises(meshd.DeadlineExceeded):
        m.using(deadline=0.05).run(
            lambda n: jax.lax.fori_loop(0, n, lambda i, x: x * 1.0001 + jnp.sin(x), jnp.ones(4096)), 10**8
        )


def test_nans_are_found(m):
    with pytest.warns(UserWarning, match=r"first nan is made by stablehlo.log .* line \d+: %\d = stablehlo.log"):
        m.using(debug_nans=True).run(lambda x: jnp.log(x), np.array([-1.0, 1.0], np.float32))
    assert m.last_run.first_nonfinite["value"] == "nan"


def test_partial_and_bound_methods(m):
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def apply(self, x):
            return x * self.scale

    assert np.array_equal(m.run(Model(3).apply, F), F * 3)
    assert np.array_equal(m.run(Model(4).apply, F), F * 4)
    assert np.array_equal(m.run(functools.partial(Model(2).apply), F), F * 2)


def test_a_deleted_program_is_posted_again(m):
    f = m.jit(lambda x: x * 5)
    assert f(1) == 5
    m._transport.request("DELETE", f"/v1/programs/{f.program(1).id}")
    assert f(2) == 10


def test_mutable_arrays_are_refused_by_name(m):
    with pytest.raises(TypeError, match="mutable arrays"):
        ref = jax.new_ref(jnp.zeros(3))
        m.run(lambda: ref[...] + 1)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_large_arguments_are_uploaded_and_leave_nothing(m, donate):
    x = np.arange(2**22 + 2**20, dtype=np.float32).reshape(-1, 1024)
    before = len(m.arrays())
    assert np.array_equal(m.run(jax.jit(lambda x, y: x + y, donate_argnums=donate), x, 1.0), x + 1)
    with pytest.raises(meshd.Error):
        m.using(mesh={"axis_names": ["x"], "devices": [77]}).run(lambda x: x + 1, x)
    assert len(m.arrays()) == before


def test_a_step_of_a_loop_is_one_request(m, monkeypatch):
    """What is known of results is in the answer that brings them: nothing is asked for it."""
    step = m.jit(lambda p, x: jax.tree.map(lambda a: a + x.sum(), p), donate_argnums=0, keep=True)
    sharding = NamedSharding(AUTO, P("x", "y"))
    p = {name: m.put(np.zeros((8, 4), np.float32), sharding) for name in "ab"}
    x = m.put(np.ones(4, np.float32), NamedSharding(AUTO, P("x")))
    p = step(step(p, x), x)
    lowered, watch = m._shared.lowerings.count, Watch(monkeypatch, m._transport)
    for _ in range(4):
        p = step(p, x)
    assert [target for method, target, *_ in watch.requests if method != "DELETE"] == ["/v1/run"] * 4
    assert m._shared.lowerings.count == lowered and np.array_equal(p["a"], np.full((8, 4), 24.0))
    assert p["a"].sharding.jax == sharding


def runs_of(watch):
    """Without what frees the arrays of tests before."""
    return [target for _, target, *_ in watch.requests if not target.startswith("/v1/arrays")]


def test_functions_of_the_server_inside_of_others_are_part_of_them(m, monkeypatch):
    @m.jit
    def inner(x):
        return jnp.sin(x) * 2

    watch = Watch(monkeypatch, m._transport)
    got = m.run(lambda x: jax.lax.scan(lambda c, _: (inner(c) + x, None), x, None, 3)[0], F)
    assert runs_of(watch) == ["/v1/run"]
    want = F
    for _ in range(3):
        want = np.sin(want) * 2 + F
    np.testing.assert_allclose(got, want, rtol=1e-4)
    np.testing.assert_allclose(m.run(jax.vmap(jax.grad(inner)), F[0]), 2 * np.cos(F[0]), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(inner))(F[0]), 2 * np.cos(F[0]), rtol=1e-5)
    with pytest.raises(TypeError, match="pass the whole function"):
        jax.jit(lambda x: m.run(jnp.sin, x))(1.0)


def test_long_texts_travel_once(m, monkeypatch):
    constant = np.random.default_rng(0).standard_normal(20_000).astype(np.float32)
    f = jax.jit(lambda x: (x * constant).sum())
    watch = Watch(monkeypatch, m._transport)
    for n in range(4):
        np.testing.assert_allclose(m.run(f, np.float32(n)), (n * constant).sum(), rtol=1e-3, atol=1e-2)
    assert runs_of(watch) == ["/v1/run", "/v1/programs", "/v1/run", "/v1/run", "/v1/run"]


def test_programs_look_like_their_types(m):
    assert repr(m.program(lambda x, y: (x, y @ x), F, F.T)) == (
        "meshd.Program(jit__lambda: (float32[4,6], float32[6,4]) -> (float32[4,6], float32[6,6]))"
    )
    assert repr(m.program("def f(x): return x", 1)) == "meshd.Program(numpy)"


def test_nans_are_errors_where_jax_is_configured_so(m):
    with jax.debug_nans(True):
        for run in (lambda x: m.run(jnp.log, x), lambda x: m.submit(jnp.log, x).result(), m.jit(jnp.log)):
            with pytest.raises(FloatingPointError, match="stablehlo.log"):
                run(-1.0)
        assert m.run(jnp.log, 1.0) == 0
    assert np.isnan(m.run(jnp.log, -1.0))


def test_warnings_are_of_the_callers_line(m):
    quiet = m.using(debug_nans=True)
    with quiet.session() as session:
        for run in (
            lambda: quiet.run(jnp.log, -1.0),
            lambda: session.run(jnp.log, -1.0),
            lambda: quiet.jit(jnp.log)(-1.0),
        ):
            with pytest.warns(UserWarning, match="stablehlo.log") as caught:
                run()
            assert caught[0].filename == __file__


def test_arguments_of_a_function_may_have_any_name(m):
    f = lambda self, function: self - function  # noqa: E731
    assert m.run(f, self=3.0, function=1.0) == 2 and m.jit(f)(self=3.0, function=1.0) == 2
    with m.session() as session:
        assert session.run(f, self=3.0, function=1.0) == 2
        assert session.submit(f, self=3.0, function=1.0).result() == 2
