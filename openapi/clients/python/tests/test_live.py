"""Functions that programs only tell are called while the run goes on."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import meshd

#: More iterations than any test waits for.
FOREVER = 1_000_000_000


def telling_loop(tell, n=FOREVER, every=1000):
    """Tells every so many iterations its number."""

    def body(i, x):
        def say():
            io_callback(lambda i: tell(int(i)), None, i, ordered=True)

        jax.lax.cond(i % every == 0, say, lambda: None)
        return jnp.sin(x)

    return lambda: jax.lax.fori_loop(0, n, body, jnp.ones(4096))


class Enough(Exception):
    pass


def ends_after(count, told):
    def tell(i):
        told.append(i)
        if len(told) == count:
            raise Enough

    return tell


def test_a_run_tells_while_it_goes_on_and_ends_with_what_a_function_raises(m):
    told = []
    with pytest.raises(meshd.CallbackFailed) as raised:
        m.run(telling_loop(ends_after(5, told)))
    assert told == [0, 1000, 2000, 3000, 4000] and isinstance(raised.value.__cause__, Enough)
    deadline = time.monotonic() + 60
    while running := m._transport.json("GET", "/v1/jobs", query={"state": "running"})["items"]:
        assert time.monotonic() < deadline, running
        time.sleep(0.05)


def test_a_session_that_streams_tells_too(m):
    with m.session(effects="streaming") as session:
        told = []
        with pytest.raises(meshd.CallbackFailed):
            session.run(telling_loop(ends_after(3, told)))
        assert told == [0, 1000, 2000]
        told = []
        job = session.submit(telling_loop(ends_after(3, told)))
        with pytest.raises(meshd.CallbackFailed):
            job.result()
        assert told == [0, 1000, 2000] and job._refresh(wait=30)["state"] == "cancelled"


def test_a_result_that_is_late_has_told_what_there_was(m):
    with m.session(effects="streaming") as session:
        told = []
        job = session.submit(telling_loop(told.append))
        while not told:
            with pytest.raises(meshd.TimedOut):
                job.result(timeout=0.5)
        job.cancel()
        with pytest.raises(meshd.Cancelled):
            job.result()
        assert told == [1000 * i for i in range(len(told))]


def test_a_run_that_fails_tells_what_came_before(m):
    told = []
    with pytest.raises(meshd.DeadlineExceeded):
        m.using(deadline=2).run(telling_loop(told.append))
    assert len(told) > 1 and told == [1000 * i for i in range(len(told))]


def test_runs_that_tell_do_not_wait_for_each_other(m):
    told, started, beside = [], threading.Event(), threading.Event()

    def tell(i):
        told.append(i)
        started.set()
        if beside.is_set():
            raise Enough

    def run():
        with pytest.raises(meshd.CallbackFailed):
            m.run(telling_loop(tell))

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    short = []
    m.run(telling_loop(short.append, n=3, every=1))
    assert short == [0, 1, 2] and thread.is_alive()
    beside.set()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("effects", [None, "atomic"])
def test_the_answer_of_each_run_has_its_own_effects(m, effects):
    client = m if effects is None else m.using(effects=effects)
    for n in (2, 3):
        told = []
        client.run(telling_loop(told.append, n=n, every=1))
        assert told == list(range(n))
        assert [(each.sequence, int(each.values[0])) for each in client.last_run.effects] == [
            (i + 1, i) for i in range(n)
        ]
        assert client.last_run.streamed is None


def test_logs_that_have_grown_are_given_up(m, monkeypatch):
    monkeypatch.setattr(meshd._own_logs, "MOST_ENTRIES", 3)
    with meshd.connect(m._transport.settings.url) as client:
        used = set()
        for _ in range(2):
            client.run(telling_loop(lambda i: None, n=2, every=1))
            used |= {log.session.id for log in client._shared.logs._idle}
        assert len(used) == 1 and not client._shared.logs._idle
        client.run(telling_loop(lambda i: None, n=1))
        (log,) = client._shared.logs._idle
        assert log.session.id not in used


def test_a_log_that_somebody_deleted_is_replaced(m):
    with meshd.connect(m._transport.settings.url) as client:
        for _ in range(2):
            told = []
            client.run(telling_loop(told.append, n=2, every=1))
            assert told == [0, 1]
            (log,) = client._shared.logs._idle
            log.session.close()


def test_large_arguments_of_jobs_outlive_a_restart_and_leave_nothing(own_server, recwarn):
    with meshd.connect(own_server.url) as m:
        large = np.arange(5 << 20, dtype=np.float32)
        with m.session() as session:
            blocker = session.submit(telling_loop(lambda i: None))
            job = session.submit(lambda x: x[-1], large)
            own_server.restart()
            blocker.cancel()
            assert job.result() == large[-1]
            assert not m.arrays() and not list(recwarn)


def test_lowered_and_exported_functions_run(m):
    f = jax.jit(lambda tree, unused, scale=1.0: {"y": tree["x"] * scale})
    x = np.ones((2, 3), np.float32)
    lowered = f.lower({"x": x}, 0, scale=2.0)
    for _ in range(2):
        assert np.array_equal(m.run(lowered, {"x": x}, 0, scale=2.0)["y"], 2 * x)
    assert np.array_equal(m.run(lowered, {"x": m.put(x)}, 0, scale=3.0)["y"], 3 * x)
    with pytest.raises(TypeError, match="was lowered for the arguments"):
        m.run(lowered, {"x": x}, 0)
    exported = jax.export.export(f, platforms=["cuda", "cpu"])({"x": x}, 0)
    assert np.array_equal(m.run(exported, {"x": x}, 0)["y"], x)
    with pytest.raises(TypeError, match="runs in this process"):
        m.run(lowered.compile(), {"x": x}, 0)


def test_a_tree_is_no_array(m):
    with pytest.raises(TypeError, match=r"jax\.tree\.map\(m\.put, tree\)"):
        m.put({"w": np.ones(3)})
    there = jax.tree.map(m.put, {"w": np.ones(3, np.float32)})
    assert m.run(lambda tree: tree["w"].sum(), there) == 3


def test_progress_counts_iterations_where_steps_depend_on_data():
    loop = {"line": 1, "iterations_done": 5, "iterations": 20}
    assert meshd._jobs.progress_text({"steps_done": 70, "loop": loop}) == "5 of 20 iterations"
    assert meshd._jobs.progress_text({"steps_done": 70, "loop": {"iterations_done": 5}}) == "5 iterations"
