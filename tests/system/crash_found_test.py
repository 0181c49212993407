#!/usr/bin/env python3
"""crash_found_test.py BINARY: the tests that kill a server find one that crashes by itself. Who was cut off by a crash sees what a kill would have
shown, so each of them is run here with a server that gets a SIGABRT that the test knows nothing of, and has to fail with it. (Of a SIGSEGV address
sanitizer makes an exit with 1.)"""
import os
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "history"))
import histories  # noqa: E402
import kill_test  # noqa: E402
from server import Meshd, ok, until  # noqa: E402

BINARY = sys.argv[1]


def crash(server):
    os.kill(server.process.pid, signal.SIGABRT)
    os.waitid(os.P_PID, server.process.pid, os.WEXITED | os.WNOWAIT)  # it is over, and nobody has asked


def fails_with_the_crash(what):
    try:
        what()
    except (AssertionError, RuntimeError) as error:
        assert f"by itself with -{int(signal.SIGABRT)};" in str(error), error
        return str(error)
    raise SystemExit(f"{what.__name__} has not found a server that crashed")


def a_kill_after_the_end_of_a_test():
    """The end of the log comes with it."""
    with tempfile.NamedTemporaryFile() as log, Meshd(BINARY, "--log-level", "info", log=log) as server:
        until(lambda: " listening " in server.end_of_log(), "its log says that it listens")
        crash(server)
        server.stop(signal.SIGKILL)


def a_test_that_never_stops_its_server():
    with Meshd(BINARY) as server:
        ok(server.ask("GET", "/livez"))
        crash(server)


def kills_of_a_chain_of_jobs():
    begin_work = kill_test.begin_work

    def crash_after(chain, rng, done):
        worker = begin_work(chain, rng, done)
        crash(chain.server)
        return worker

    kill_test.begin_work = crash_after
    kill_test.main()


def a_history_with_its_nemesis():
    def crash_instead(nemesis):
        server = nemesis.run.server
        if server.process.poll() is None:
            crash(server)

    histories.Nemesis.drop = crash_instead
    histories.make(BINARY, 2, 4, 400)


def main():
    assert " listening " in fails_with_the_crash(a_kill_after_the_end_of_a_test), "the end of the log is not told"
    for what in (a_test_that_never_stops_its_server, kills_of_a_chain_of_jobs, a_history_with_its_nemesis):
        print(f"{what.__name__}: {fails_with_the_crash(what)[:200]}", flush=True)
    with Meshd(BINARY) as server:
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        server.start()
        assert server.stop() == 0


main()
