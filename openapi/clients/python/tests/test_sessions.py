"""Sessions, their log, jobs in the background, threads."""

import io
import sys
import threading
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import meshd


def log(x):
    io_callback(lambda *_: None, None, x, ordered=True)
    return x * 2


def spin(n):
    """A while without end for the tests' purposes: it can be cancelled and shows progress."""
    return jax.lax.fori_loop(0, n, lambda i, x: jnp.sin(x) + jnp.cumsum(x)[-1] * 1e-9, jnp.ones(8192))


def test_effects_are_in_order(m):
    with m.session("order") as session:
        assert session.name == "order"
        for n in range(5):
            assert session.run(log, n) == 2 * n
        entries = list(session.effects(follow=False))
        assert [each.sequence for each in entries] == [1, 2, 3, 4, 5]
        assert [int(each.values[0]) for each in entries] == [0, 1, 2, 3, 4]
        assert all(each.ordered and each.effect == "log" and each.job for each in entries)
        assert [each.sequence for each in session.effects(after=3, follow=False)] == [4, 5]
        identity = session.id
    with pytest.raises(meshd.NotFound):
        m._transport.json("GET", f"/v1/sessions/{identity}")


def test_effects_come_while_one_waits_for_them(m):
    with m.session() as session:
        seen, three = [], threading.Event()

        def watch():
            for effect in session.effects():
                seen.append(float(effect.values[0]))
                if len(seen) == 3:
                    three.set()
                    break

        watcher = threading.Thread(target=watch)
        watcher.start()
        for n in range(3):
            session.run(log, float(n))
        assert three.wait(30) and seen == [0, 1, 2]
        watcher.join()


def logged_loop(n):
    """Logs the number of each iteration, some microseconds apart."""

    def body(i, x):
        io_callback(lambda *_: None, None, i, ordered=True)
        return jnp.sin(x)

    return jax.lax.fori_loop(0, n, body, jnp.ones(16384))


def test_effects_of_a_running_job_come_while_it_runs(m):
    with m.session(effects="streaming") as session:
        job = session.submit(logged_loop, 1_000_000)
        seen = []
        for effect in job.effects():
            seen.append(effect)
            if len(seen) == 100:
                assert not job.done()
                job.cancel()
        assert (seen[-1].effect, seen[-1].name) == ("cancelled", "cancelled")
        assert [int(each.values[0]) for each in seen[:-1]] == list(range(len(seen) - 1))
        with pytest.raises(meshd.Cancelled):
            job.result()


def test_streamed_effects_are_told_to_their_functions(m):
    told = []

    def told_loop(n):
        def body(i, x):
            io_callback(lambda i: told.append(int(i)), None, i, ordered=True)
            return x + 1

        return jax.lax.fori_loop(0, n, body, 0)

    with m.session() as session:
        job = m.using(effects="streaming").session(id=session.id).submit(told_loop, 20)
        assert [int(each.values[0]) for each in job.effects()] == list(range(20))
        assert job.result() == 20 and told == list(range(20))
        assert job.info.effects == [] and job.info.streamed == {"count": 20, "first": 1, "last": 20}
        assert list(job.effects(after=18)) == list(session.effects(after=18, follow=False))


def test_progress_tells_what_is_known(m):
    known = m.submit(lambda: jax.lax.fori_loop(0, 10_000_000, lambda _, x: jnp.sin(x), jnp.ones(16384)))
    deadline = time.monotonic() + 30
    while "remaining_seconds" not in known.progress and time.monotonic() < deadline:
        time.sleep(0.05)
    progress = known.progress
    assert (
        0 < progress["percent"] < 100
        and progress["loop"]["iterations"] == 10_000_000
        and progress["remaining_seconds"] > 0
    )
    known.cancel()
    unknown = m.submit(spin, 10_000_000)
    while "loop" not in unknown.progress and time.monotonic() < deadline:
        time.sleep(0.05)
    progress = unknown.progress
    assert "percent" not in progress and "iterations" not in progress["loop"], progress
    unknown.cancel()


def test_effects_resume_after_a_lost_connection(own_server):
    with meshd.connect(own_server.url) as m:
        session = m.session()
        session.run(log, 1)
        effects = session.effects()
        assert next(effects).sequence == 1
        own_server.restart()
        session.run(log, 2)
        second = next(effects)
        assert (second.sequence, int(second.values[0])) == (2, 2)
        effects.close()


def test_arrays_and_sessions_outlive_the_server(own_server):
    with meshd.connect(own_server.url) as m:
        kept, lost = m.put(np.arange(3, dtype=np.float32), name="kept"), m.put(np.arange(3.0), durability="memory")
        f = m.jit(lambda x: x + 1)
        assert f(kept).tolist() == [1, 2, 3]
        own_server.restart()
        assert f(kept).tolist() == [1, 2, 3], "on a connection that was lost"
        with pytest.raises(meshd.ArrayLost):
            np.asarray(lost)


def test_effects_of_a_session_that_was_deleted_end_with_an_error(m):
    session = m.session()
    session.close()
    with pytest.raises(meshd.NotFound):
        next(session.effects())


def test_jobs(m):
    with m.session() as session:
        job = session.submit(lambda x: {"y": x + 1}, np.arange(3))
        assert job.result()["y"].tolist() == [1, 2, 3] and job.result()["y"].tolist() == [1, 2, 3]
        assert job.status == "done" and job.done() and job.info.job == job.id and job.id in repr(job)
        jobs = [session.submit(log, n) for n in range(4)]
        assert [int(each.result()) for each in jobs] == [0, 2, 4, 6]
        session.barrier()


def test_large_results_of_jobs(m):
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    before = len(m.arrays())
    assert np.array_equal(m.submit(lambda x: x * 2, x).result(), x * 2)
    assert len(m.arrays()) == before, "what the result was fetched from is gone"
    kept = m.submit(lambda x: (x, x.sum()), x, keep=True).result()
    assert isinstance(kept[0], meshd.Array) and np.array_equal(kept[0], x)


def test_a_job_is_cancelled(m):
    job = m.submit(spin, 10**8)
    with pytest.raises(meshd.TimedOut):
        job.result(timeout=0.3)
    assert not job.done() and job.status in ("queued", "running")
    job.cancel()
    with pytest.raises(meshd.Cancelled):
        job.result(timeout=60)
    assert job.status == "cancelled"
    job.cancel()


def test_a_job_fails(m):
    job = m.using(deadline=0.2).submit(spin, 10**8)
    for _ in range(2):
        with pytest.raises(meshd.DeadlineExceeded) as caught:
            job.result(timeout=60)
    assert caught.value.code == "deadline_exceeded" and job.status == "failed"


def test_progress_on_a_terminal(m, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", shown)
    m.submit(spin, 200).result(progress=True)
    assert "done" in shown.getvalue()
    shown.isatty = lambda: False
    shown.truncate(0)
    shown.seek(0)
    m.submit(spin, 3).result(progress=True)
    assert shown.getvalue() == ""


def test_progress_with_tqdm(m, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, **_):
            self.n, self.total, self.refreshes = 0, None, 0
            bars.append(self)

        def refresh(self):
            self.refreshes += 1

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    job = m.submit(spin, 10**8)
    stopper = threading.Timer(2.5, job.cancel)
    stopper.start()
    with pytest.raises(meshd.Cancelled):
        job.result(progress=True)
    assert len(bars) == 1 and bars[0].closed and bars[0].n > 0 and bars[0].refreshes > 0


def test_a_session_that_halts(m):
    with m.session(on_error="halt") as session:
        failing = m.using(deadline=0.05)._submit(spin, (10**8,), {}, False, session)
        with pytest.raises(meshd.DeadlineExceeded):
            failing.result(timeout=60)
        with pytest.raises(meshd.SessionHalted):
            session.run(log, 1)


def test_threads(m):
    """A client, a jitted function and a handle are used by many threads at once."""
    f, a = m.jit(lambda x, y: x * y), m.put(np.arange(100, dtype=np.float32))
    wrong = []

    def work(number):
        try:
            for step in range(15):
                factor = float(number * 100 + step)
                if not np.array_equal(f(a, factor), np.arange(100, dtype=np.float32) * np.float32(factor)):
                    wrong.append((number, step))
                if a[3] != 3 or m.last_run.statistics["steps"] < 1:
                    wrong.append((number, "handle"))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_forked_process_has_connections_of_its_own(m):
    import os

    assert m.run(lambda x: x + 1, 1) == 2
    connection = m._transport._kept()
    process = os.getpid()
    try:
        m._transport._threads.process = process + 1  # as a child finds it
        assert m._transport._kept() is None
    finally:
        m._transport._threads.process, m._transport._threads.connection = process, connection


def test_waiting_is_not_polling(m):
    """One request waits for a job; nothing is asked again and again."""
    job = m.submit(spin, 3000)
    started = time.monotonic()
    count, exchange = 0, m._transport._exchange

    def counted(*rest):
        nonlocal count
        count += 1
        return exchange(*rest)

    m._transport._exchange = counted
    try:
        job.result(timeout=120)
    finally:
        del m._transport._exchange
    assert count <= 3 + (time.monotonic() - started) / 10


def test_a_session_is_found_by_its_id(m):
    session = m.session()
    session.run(log, 1)
    again = m.session(id=session.id)
    assert again.run(log, 2) == 4 and [each.sequence for each in again.effects(follow=False)] == [1, 2]
    session.close()


def test_what_fails_in_a_session_does_not_wait_for_its_jobs(m):
    with pytest.raises(ZeroDivisionError), m.session() as session:
        job = session.submit(spin, 10**8)
        raise ZeroDivisionError
    with pytest.raises((meshd.Cancelled, meshd.NotFound)):
        job.result(timeout=60)


def test_a_job_is_found_by_its_id(m):
    x = np.arange(20000, dtype=np.float32)
    kept = m.submit(lambda x: {"a": log(x), "b": x.sum()}, x, keep="durable")
    again = m.job(kept.id)
    first, second = again.result(timeout=60)
    assert np.array_equal(first, x * 2) and float(second) == kept.result()["b"].item() and again.status == "done"
    assert m.job(m.submit(lambda: jnp.ones(3)).id).result().tolist() == [1, 1, 1]
    with pytest.raises(meshd.NotFound):
        m.job("job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41")
