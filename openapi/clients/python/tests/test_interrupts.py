"""Runs that nobody waits for any more end on the server, and those whose connection was lost go on."""

import os
import signal
import socket
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meshd


@pytest.fixture
def alone(own_server):
    """A server on which nobody else runs anything."""
    with meshd.connect(own_server.url) as client:
        yield client


def spin(x, n=2 * 10**9):
    return jax.lax.fori_loop(0, n, lambda i, v: jnp.sin(v), x)


def spin_and_tell(x):
    jax.debug.print("it spins {}", x)
    return spin(x)


def jobs_that(client, state):
    return [job["id"] for job in client._transport.json("GET", "/v1/jobs", query={"state": state})["items"]]


def when_one_runs(url, what):
    """Does it, from another thread, as soon as a job of the server is running."""

    def watch():
        with meshd.connect(url) as client:
            deadline = time.monotonic() + 60
            while not jobs_that(client, "running"):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        what()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


RUNS = {
    "kept": lambda m: m.run(spin, 1.0, keep=True),
    "with prints": lambda m: m.run(spin_and_tell, 1.0),
    "in a session": lambda m: m.session().run(spin, 1.0),
    "in a session with prints": lambda m: m.session(effects="streaming").run(spin_and_tell, 1.0),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_ctrl_c_ends_the_run_on_the_server(alone, own_server, run):
    thread = when_one_runs(own_server.url, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        run(alone)
    thread.join()
    deadline = time.monotonic() + 60
    while jobs_that(alone, "running"):
        assert time.monotonic() < deadline, "nobody waits for it, and it goes on"
        time.sleep(0.01)
    assert alone.run(jnp.add, 1, 2) == 3


def test_a_run_whose_time_is_up_ends_too(own_server):
    with meshd.connect(own_server.url, timeout=3) as client:
        with pytest.raises(meshd.TimedOut):
            client.run(spin, 1.0, keep=True)
        deadline = time.monotonic() + 60
        while jobs_that(client, "running"):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("tells", [False, True])
def test_a_run_goes_on_when_its_connection_was_lost(alone, own_server, capsys, tells):
    def f(x):
        if tells:
            jax.debug.print("it spins {}", x)
        return spin(x, 20_000_000)

    def cut():
        alone_connection.sock.shutdown(socket.SHUT_RDWR)

    alone.info()
    alone_connection = alone._transport._kept()
    thread = when_one_runs(own_server.url, cut)
    got = alone.run(f, np.float32(1), keep=True)
    thread.join()
    np.testing.assert_allclose(np.asarray(got), jax.jit(f)(np.float32(1)), rtol=1e-5)
    with meshd.connect(own_server.url) as other:
        assert len(jobs_that(other, "done")) == 1, "it ran once"
    if tells:
        assert capsys.readouterr().out.count("it spins 1.0") == 2, "once there, once here"


def test_a_kept_result_comes_after_the_server_was_killed(alone, own_server):
    f = jax.jit(lambda x: spin(x, 20_000_000))
    thread = when_one_runs(own_server.url, own_server.restart)
    got = alone.run(f, np.float32(1), keep=True)
    thread.join()
    np.testing.assert_allclose(np.asarray(got), f(np.float32(1)), rtol=1e-5)


def test_what_was_uploaded_for_a_run_goes_with_it(alone, own_server):
    large = np.ones(5_000_000, np.float32)
    thread = when_one_runs(own_server.url, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        alone.run(lambda x, y: spin(y) + x.sum(), large, 1.0, keep=True)
    thread.join()
    deadline = time.monotonic() + 60
    while alone.arrays():
        assert time.monotonic() < deadline
        time.sleep(0.01)
