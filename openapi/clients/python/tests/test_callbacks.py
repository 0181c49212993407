"""Python functions that programs call are called: with JAX's values, in JAX's order."""

import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import meshd
from meshd import _jax_live

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def twice(function, *args, capsys=None):
    """What a function gives and what it said, on the server and in the process."""
    out = []
    for run in (CLIENT.run, lambda f, *a: jax.jit(f)(*a)):
        SAID.clear()
        result = jax.tree.map(np.asarray, run(function, *args))
        jax.effects_barrier()
        out.append((result, list(SAID), None if capsys is None else capsys.readouterr().out))
    return out


SAID = []
CLIENT = None


@pytest.fixture(autouse=True)
def client(m):
    global CLIENT
    CLIENT = m


def say(name):
    def told(*values, **named):
        SAID.append((name, [np.asarray(each).tolist() for each in values], sorted(named)))

    return told


def agree(function, *args, capsys=None):
    there, here = twice(function, *args, capsys=capsys)
    assert jax.tree.all(jax.tree.map(np.array_equal, there[0], here[0]))
    assert there[1:] == here[1:]
    return there


def test_print(capsys):
    def f(x):
        jax.debug.print("x is {} and {y:.2f}", x, y=x.sum())
        jax.debug.print("ordered {x}", x=x[0], ordered=True)
        return x

    there, here = twice(f, np.arange(3, dtype=np.float32), capsys=capsys)
    # JAX in the process says when unordered ones come; the server has the order of the program.
    assert there[2] == "x is [0. 1. 2.] and 3.00\nordered 0.0\n"
    assert sorted(here[2].split("\n")) == sorted(there[2].split("\n"))


def test_debug_callback_in_a_loop():
    def f(x):
        def body(i, x):
            jax.debug.callback(say("step"), i, value=x, ordered=True)
            return x * 2

        return jax.lax.fori_loop(0, 4, body, x)

    assert len(agree(f, 1.0)[1]) == 4


def test_io_callback_that_gives_nothing():
    def f(x):
        io_callback(say("log"), None, {"a": x, "b": (x + 1,)}["a"], ordered=True)
        return x

    agree(f, np.arange(4))


def test_pure_callback():
    def f(x):
        return jax.pure_callback(lambda v: np.sin(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    agree(f, np.linspace(0, 1, 5, dtype=np.float32))


def test_large_replies_travel_as_bytes(monkeypatch):
    bits = np.arange(1 << 15, dtype=np.uint32) * 131_075  # NaNs with payloads among them
    sent = []
    request = CLIENT._transport.request

    def spy(method, path, **options):
        if "/callbacks/" in path:
            sent.append((options["headers"]["Content-Type"].split(";")[0], sum(map(len, options["body"]))))
        return request(method, path, **options)

    monkeypatch.setattr(CLIENT._transport, "request", spy)

    def f(x):
        shape = (jax.ShapeDtypeStruct(bits.shape, np.float32), jax.ShapeDtypeStruct((3,), jnp.bfloat16))
        return jax.pure_callback(lambda v: (bits.view(np.float32), np.full(3, v, jnp.bfloat16)), shape, x)

    large, small = CLIENT.run(f, np.float32(1.5))
    assert np.array_equal(np.asarray(large).view(np.uint32), bits) and np.asarray(small).tolist() == [1.5] * 3
    assert sent[0][0] == "multipart/form-data" and bits.nbytes < sent[0][1] < bits.nbytes + 1000


def test_pure_callback_under_vmap():
    def one(x):
        return jax.pure_callback(lambda v: v * 2, SCALAR, x, vmap_method="sequential")

    agree(jax.vmap(one), np.arange(3, dtype=np.float32))


def test_io_callback_with_trees():
    shape = {"a": jax.ShapeDtypeStruct((2,), jnp.int32), "b": (SCALAR, None)}

    def answer(x, *, y):
        SAID.append(("asked", float(x), float(y["z"])))
        return {"a": np.array([1, 2], np.int32), "b": (np.float32(x * 3), None)}

    def f(x):
        return io_callback(answer, shape, x, y={"z": x + 1})

    agree(f, 2.0)


def test_state_of_python_is_kept_between_calls():
    total = [0.0]

    def add(x):
        total[0] += float(x)
        return np.float32(total[0])

    def f(x):
        return jax.lax.scan(lambda c, v: (c, io_callback(add, SCALAR, v, ordered=True)), 0, x)[1]

    assert CLIENT.run(f, np.arange(4, dtype=np.float32)).tolist() == [0, 1, 3, 6]
    assert total == [6]


def test_answered_and_told_calls_keep_their_order():
    def ask(x):
        SAID.append(("ask", float(x)))
        return np.float32(x + 1)

    def f(x):
        def body(i, v):
            io_callback(say("before"), None, v, ordered=True)
            v = io_callback(ask, SCALAR, v, ordered=True)
            io_callback(say("after"), None, v, ordered=True)
            return v

        return jax.lax.fori_loop(0, 3, body, x)

    assert len(agree(f, 0.0)[1]) == 9


def test_live_prints_come_while_the_program_runs():
    seen = []
    job = CLIENT.using(live=True).submit(wait_for_print, 0.0)
    PRINTED.append(lambda value: seen.append((float(value), job.done())))
    assert job.result() == 3 and seen == [(0, False), (1, False), (2, False)]


PRINTED = []


def wait_for_print(x):
    def body(i, v):
        jax.debug.callback(lambda value: PRINTED[-1](value), v)
        return v + 1

    return jax.lax.fori_loop(0, 3, body, x)


def test_callbacks_on_every_device():
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))

    def f(x):
        jax.debug.callback(say("shard"), x)
        return x * io_callback(lambda v: np.float32(v.sum()), SCALAR, x)

    mapped = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    got = CLIENT.run(mapped, np.arange(8, dtype=np.float32))
    assert got.tolist() == [0, 1, 10, 15, 36, 45, 78, 91]
    assert sorted(each[1][0] for each in SAID[-4:]) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_types_of_values():
    def f(x, b, n, z):
        def answer(*values):
            SAID.append([(str(np.asarray(each).dtype), np.shape(each)) for each in values])
            return values

        return io_callback(
            answer, tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (x, b, n, z)), x, b, n, z
        )

    agree(f, np.ones((2, 2), jnp.bfloat16), np.array([True]), np.int8(-3), np.ones((0, 2), np.complex64))


def raises(*_):
    raise ArithmeticError("of one's own")


@pytest.mark.parametrize("f", [
    lambda x: jax.pure_callback(raises, SCALAR, x),
    lambda x: io_callback(raises, SCALAR, x, ordered=True),
    lambda x: jax.debug.callback(raises, x),
], ids=["pure", "io", "debug"])  # fmt: skip
def test_what_a_function_raises_is_raised(f):
    with pytest.raises(meshd.CallbackFailed, match="of one's own") as caught:
        CLIENT.run(f, 1.0)
    assert isinstance(caught.value.__cause__, ArithmeticError)


@pytest.mark.parametrize(
    "error", [FileNotFoundError("no file"), TimeoutError(), meshd.NotFound("no array", status=404)]
)
def test_errors_like_those_of_a_connection_are_the_functions_own(error):
    def fail(_):
        raise error

    with pytest.raises(meshd.CallbackFailed) as caught:
        CLIENT.run(lambda x: jax.pure_callback(fail, SCALAR, x), 1.0)
    assert caught.value.__cause__ is error


def test_a_job_that_is_cancelled_while_a_function_thinks():
    thinks, let_go = threading.Event(), threading.Event()

    def think(x):
        thinks.set()
        let_go.wait(60)
        return x

    job = CLIENT.submit(lambda x: jax.pure_callback(think, SCALAR, x), 1.0)
    assert thinks.wait(60)
    job.cancel()
    threading.Timer(0.2, let_go.set).start()
    with pytest.raises(meshd.Cancelled):
        job.result(timeout=60)


def test_wrong_shapes_of_answers():
    with pytest.raises(meshd.CallbackFailed, match="shape"):
        CLIENT.run(lambda x: io_callback(lambda v: np.zeros(3, np.float32), SCALAR, x), 1.0)


def test_callbacks_in_a_session_and_in_jit():
    with CLIENT.session() as session:
        f = CLIENT.jit(lambda x: io_callback(lambda v: v + 1, SCALAR, x))
        assert session.run(f, 1.0) == 2 and f(2.0) == 3
        jobs = [session.submit(f, float(n)) for n in range(3)]
        assert [float(each.result()) for each in jobs] == [1, 2, 3]


def test_a_function_may_run_something_itself():
    def inner(x):
        return CLIENT.run(lambda v: v * 10, np.asarray(x))

    assert CLIENT.run(lambda x: jax.pure_callback(inner, SCALAR, x) + 1, 2.0) == 21


def test_large_values_and_results_beside_effects():
    x = np.random.default_rng(0).standard_normal((200, 100)).astype(np.float32)

    def f(x):
        jax.debug.callback(lambda v: SAID.append(np.asarray(v)), x)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    SAID.clear()
    assert np.array_equal(CLIENT.run(f, x), x * 2) and np.array_equal(SAID[0], x)
    before = len(CLIENT.arrays())
    assert np.array_equal(CLIENT.run(lambda x: (jax.debug.callback(SAID.append, x[0, 0]), x)[1], x), x)
    assert len(CLIENT.arrays()) == before


def test_this_version_of_jax_has_the_names_that_live_lowering_uses():
    assert _jax_live.parameters() is not None


def test_a_program_goes_on_when_the_server_was_killed(own_server):
    """The job runs again and reuses the answers that it has: no function is asked twice for the same call."""
    asked, killed = [], []

    def ask(x):
        asked.append(float(x))
        if len(asked) == 3 and not killed:
            killed.append(True)
            own_server.restart()
        return np.float32(x + 1)

    def f(x):
        return jax.lax.fori_loop(0, 6, lambda i, v: io_callback(ask, SCALAR, v, ordered=True), x)

    with meshd.connect(own_server.url) as m:
        assert m.run(f, 0.0) == 6
    assert asked == [0, 1, 2, 3, 4, 5] and killed


def test_leaving_a_program_that_asks_ends_it():
    """Ctrl-C while a function thinks: the job is cancelled, since nobody would answer it any more."""
    let_go, jobs = threading.Event(), []

    def think(x):
        jobs.append(CLIENT._transport.json("GET", "/v1/jobs", query={"limit": 1000})["items"])
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        let_go.wait(60)
        return x

    with pytest.raises(KeyboardInterrupt):
        CLIENT.run(lambda x: jax.pure_callback(think, SCALAR, x), 1.0)
    let_go.set()
    mine = [job["id"] for job in jobs[0] if job["state"] == "running"]
    assert len(mine) == 1
    document = CLIENT._transport.json("GET", f"/v1/jobs/{mine[0]}", query={"wait": 30})
    assert document["state"] == "cancelled"
    assert CLIENT.run(lambda x: x + 1, 1) == 2


def test_programs_that_ask_run_beside_each_other():
    """Two of them, each of which waits in a function until the other one asks, too."""
    both = threading.Barrier(2)

    def meet(x):
        both.wait(60)
        return x + 1

    def f(x):
        return jax.lax.fori_loop(0, 3, lambda i, v: io_callback(meet, SCALAR, v), x)

    results = {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: float(CLIENT.run(f, float(n)))})) for n in (0, 10)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert results == {0: 3, 10: 13}
