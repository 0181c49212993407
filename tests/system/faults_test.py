#!/usr/bin/env python3
"""Faults of the system around the real binary, each with a server of its own: no descriptors or threads left, a clock that jumps, a server
that is told to end under load or is stopped for a while, a disk that stalls, fails or is full, a second server, a newer schema. Under MESHD_LONG=1
(./dev check-long) as long and as often as docs/durability.md has it, else in short."""
import email.utils
import http.client
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from server import COUNT as SPIN_TO_N
from server import SKIPPED, SPIN, Meshd, logging, ok, tell_not_tried, until
from shim import FATAL, YEAR, Faults
from small_disk import SmallDisk

BINARY, SHIM = sys.argv[1:3]
LONG, LONGEST = "MESHD_LONG" in os.environ, os.environ.get("LONG") == "1"
# Times are judged by LONG runs alone: beside other tests, on a busy machine, they are printed only.
ASYNC = {"Prefer": "respond-async"}
SMALL = {"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
                             "  return %0 : tensor<2xf32>\n}"}, "arguments": [[1, 2]]}
# Counts to %n, logs what it has counted to and gives it.
LOG = "func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<i32>) {\n" + SPIN_TO_N + """\
  %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %0) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  return %u, %0 : !stablehlo.token, tensor<i32>
}"""


def logged_count(number):
    return logging(number, LOG)


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def new_session(server):
    return ok(server.ask("POST", "/v1/sessions"), 201)["id"]


def values_of_log(server, session):
    values, after = [], 0
    while True:
        items = ok(server.ask("GET", f"/v1/sessions/{session}/effects?limit=1000&after={after}"))["items"]
        if not items:
            return values
        assert [entry["sequence"] for entry in items] == list(range(after + 1, after + len(items) + 1)), items
        values += [entry["values"][0]["data"] for entry in items]
        after = items[-1]["sequence"]


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def together(*works):
    """Runs them in threads; raises what the first of them raised."""
    failures = []

    def safely(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001: raised below
            failures.append(error)

    threads = [threading.Thread(target=safely, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def no_descriptors_left():
    """Who comes beyond `ulimit -n 64` is told so or waits, nothing spins, and all is well when the others leave."""
    with Meshd(BINARY, "--devices", "2", launcher=["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]) as server:
        crowd = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(200)]
        for client in crowd:
            client.setblocking(False)

        def told_now():
            told = 0
            for client in crowd:
                try:
                    told += client.recv(100, socket.MSG_PEEK).startswith(b"HTTP/1.1 503")
                except OSError:  # it is connected, or waits to be
                    pass
            return told

        told = until(told_now, "somebody is told", 60)
        before, began = cpu_seconds(server), time.monotonic()
        time.sleep(5 if LONG else 1)
        share = (cpu_seconds(server) - before) / (time.monotonic() - began)
        assert share < 0.1 or not LONG, f"{share:.0%} of a processor is used for nothing"
        assert server.process.poll() is None
        for client in crowd:
            client.close()
        # Uploads need descriptors of their own.
        until(lambda: _answer(server, "POST", "/v1/run", SMALL) == 200, "runs are served again", 60)
        ok(server.ask("POST", "/v1/arrays?dtype=float32&shape=2", bytes(8), {"Content-Type": "application/octet-stream"}), 201)
        print(f"  {told} of 200 clients were told, {share:.1%} of a processor meanwhile")


def _answer(server, *request):
    try:
        return server.ask(*request)[0]
    except (OSError, http.client.HTTPException):
        return None


def no_threads_left():
    """A server that gets no more threads works with those that it has."""
    shim = Faults(SHIM)
    with Meshd(BINARY, "--devices", "8", launcher=shim.launcher()) as server:
        session = new_session(server)
        shim.set(no_threads=True)
        statuses, numbers = [], itertools.count()

        def client(place):
            for _ in range(10):
                number = next(numbers)
                status, headers, document = server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number), ASYNC if number % 2 else {})
                assert status in (200, 202) or (status == 503 and headers["Retry-After"]), (status, document)
                statuses.append(status)

        until(lambda: (together(*(lambda place=place: client(place) for place in range(16))), shim.hits())[1], "a thread is asked for", 60)
        ok(server.ask("POST", f"/v1/sessions/{session}/barrier"))
        accepted = sum(status != 503 for status in statuses)
        assert accepted and len(set(values_of_log(server, session))) == accepted
        shim.set()
        together(*(lambda: ok(server.ask("POST", "/v1/run", SMALL)) for _ in range(16)))
        print(f"  {accepted} of {len(statuses)} jobs were taken, {shim.hits()} threads were not")


def date_of(server):
    return email.utils.parsedate_to_datetime(server.ask("GET", "/livez")[1]["Date"]).timestamp()


def clock_jumps():
    """Ten years on and back, and backwards every second: times of waiting are right, order is kept, nothing is lost."""
    shim = Faults(SHIM)
    with Meshd(BINARY, "--devices", "4", launcher=shim.launcher()) as server:
        session = new_session(server)
        rounds = 60 if LONG else 6
        offsets = [10 * YEAR, -10 * YEAR, 0, *(-n for n in range(1, 4))]
        sent = 0
        for n in range(rounds):
            shim.set(clock=offsets[n % len(offsets)])
            until(lambda: abs(date_of(server) - time.time() - offsets[n % len(offsets)]) < 2, "the server has this clock", 60)
            for _ in range(3):
                sent += 1
                ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(sent), {"Idempotency-Key": f"k{sent}"}))
            began = time.monotonic()
            answer = {}

            def late():
                answer["late"] = server.ask("POST", "/v1/run", {"program": {"text": SPIN}, "arguments": [2_000_000_000], "deadline": 0.5})
                answer["took"] = time.monotonic() - began

            def jump():  # in the middle of the wait
                time.sleep(0.2)
                shim.set(clock=offsets[(n + 1) % len(offsets)])

            together(late, jump)
            assert answer["late"][2]["code"] == "deadline_exceeded", answer
            assert answer["took"] > 0.45 and (answer["took"] < 1.5 or not LONG), f"a deadline of 0.5 s came after {answer['took']:.2f} s"
        job = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": SPIN}, "arguments": [2_000_000_000]}, ASYNC), 202)["id"]
        began = time.monotonic()
        together(lambda: ok(server.ask("GET", f"/v1/jobs/{job}?wait=2")), lambda: (time.sleep(0.5), shim.set(clock=10 * YEAR)))
        took = time.monotonic() - began
        assert took > 1.8 and (took < 4 or not LONG), f"a wait of 2 s took {took:.2f} s"
        ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
        for how, offset in ((signal.SIGKILL, -10 * YEAR), (signal.SIGTERM, 10 * YEAR)):
            server.stop(how)
            shim.set(clock=offset)
            server.start()
            sent += 1
            ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(sent)))
            again = server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(1), {"Idempotency-Key": "k1"})
            assert ok(again)["effects"][0]["sequence"] == 1 and again[1]["Idempotency-Replayed"] == "true"
        assert values_of_log(server, session) == list(range(1, sent + 1))
        numbers = [row["number"] for row in ok(server.ask("GET", f"/v1/sessions/{session}/jobs?limit=1000"))["items"]]
        assert sorted(numbers) == list(range(1, sent + 2)), numbers
        print(f"  {rounds + 3} jumps, {sent} jobs in order")


def told_to_end_under_load():
    """SIGTERM: the server ends with 0 in time; what was answered is there, and a request that got no answer was not touched."""
    rounds = 300 if LONGEST else 30 if LONG else 3
    rng, untouched, sent = random.Random(7), 0, 0
    with Meshd(BINARY, "--devices", "4", "--drain-timeout", "5") as server:
        for _ in range(rounds):
            session = new_session(server)
            stopping, open_, acknowledged, ends = threading.Event(), [], [], []

            def client(place):
                number = 1000 * place
                while not stopping.is_set():
                    number += 1
                    key = {"Idempotency-Key": f"{session}-{number}"}
                    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
                    try:
                        connection.connect()
                    except OSError:
                        return  # it accepts no more
                    connection.close()
                    try:
                        status, headers, document = server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number), {**key, **(ASYNC if number % 3 == 0 else {})})
                    except ConnectionRefusedError:
                        return
                    except (OSError, http.client.HTTPException) as error:
                        open_.append((number, time.monotonic(), error))
                        return
                    assert status in (200, 202) or (status == 503 and headers["Retry-After"]), (status, document)
                    if status != 503:
                        acknowledged.append(number)

            def end():
                time.sleep(rng.uniform(0.05, 0.5))
                began = time.monotonic()
                code = server.stop()
                stopping.set()
                ends.append((began, time.monotonic()))
                took = ends[-1][1] - began
                assert code == 0 and (took < 5 + 2 + 2 or not LONG), f"ended with {code} after {took:.1f} s"

            together(end, *(lambda place=place: client(place) for place in range(1, 9)))
            server.start()
            (began, ended), = ends
            for number, lost, error in open_:
                status, headers, answer = server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number), {"Idempotency-Key": f"{session}-{number}"})
                assert status == 200 and headers["Idempotency-Replayed"] is None, (
                    f"job {number} got no answer ({error!r}, {lost - began:.2f} s into an end of {ended - began:.2f} s) and has happened: {status} {answer}")
            ok(server.ask("POST", f"/v1/sessions/{session}/barrier"))
            logged = values_of_log(server, session)
            assert len(set(logged)) == len(logged) and set(acknowledged) <= set(logged), set(acknowledged) - set(logged)
            untouched += len(open_)
            sent += len(acknowledged)
        assert sent >= (10 * rounds if LONG else 1), f"only {sent} jobs were sent"
        print(f"  {rounds} ends, {sent} acknowledged jobs, {untouched} requests without an answer that were not touched")


def stopped_for_a_while():
    """SIGSTOP and SIGCONT: who waited is answered, nobody is cut off for the time that was lost, nothing is lost."""
    seconds = 30 if LONG else 3
    with Meshd(BINARY, "--devices", "4") as server:
        session, other = new_session(server), new_session(server)
        endless = ok(server.ask("POST", f"/v1/sessions/{other}/jobs", {"program": {"text": SPIN}, "arguments": [2_000_000_000]}, ASYNC), 202)["id"]
        stopping, times, done = threading.Event(), [], []

        def client(place):
            number = 1000 * place
            while not stopping.is_set():
                number += 1
                began = time.monotonic()
                ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number)))
                times.append((began, time.monotonic()))
                done.append(number)

        def pause():
            time.sleep(0.5)
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            server.process.send_signal(signal.SIGCONT)
            continued = time.monotonic()
            try:
                first = until(lambda: min((end for _, end in times if end > continued), default=0), "an answer", 60) - continued
                time.sleep(1)
            finally:
                stopping.set()
            assert first < 1 or not LONG, f"the first answer came {first:.2f} s later"

        together(pause, *(lambda place=place: client(place) for place in range(1, 5)))
        assert sorted(values_of_log(server, session)) == sorted(done)
        assert ok(server.ask("GET", f"/v1/jobs/{endless}"))["state"] == "running", "the job of another session goes on"
        ok(server.ask("DELETE", f"/v1/jobs/{endless}"), 202)
        print(f"  stopped for {seconds} s, {len(done)} jobs")


def stalled_disk():
    """Syncs and writes that take 500 ms each: writers wait for them; /livez and runs that write nothing do not."""
    shim = Faults(SHIM)
    with Meshd(BINARY, "--devices", "4", launcher=shim.launcher()) as server:
        session = new_session(server)
        shim.set(stall=0.5)
        stopping, done, alive, runs = threading.Event(), [], [], []

        def writer(place):
            number = 1000 * place
            while not stopping.is_set():
                number += 1
                ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number)))
                ok(server.ask("POST", "/v1/arrays?dtype=float32&shape=2", bytes(8), {"Content-Type": "application/octet-stream"}), 201)
                done.append(number)

        def measure():
            end = time.monotonic() + (30 if LONG else 5)
            while time.monotonic() < end:
                for times, request in ((alive, ("GET", "/livez")), (runs, ("POST", "/v1/run", SMALL))):
                    began = time.monotonic()
                    assert server.ask(*request)[0] == 200
                    times.append(time.monotonic() - began)
                time.sleep(0.01)
            stopping.set()

        together(measure, *(lambda place=place: writer(place) for place in range(1, 9)))
        shim.set()
        assert shim.hits() and done, "nothing was stalled"
        for name, times in (("/livez", alive), ("a run", runs)):
            assert percentile(times, 0.99) < 0.05 or not LONG, f"{name} took {percentile(times, 0.99):.3f} s beside {shim.hits()} stalls"
        assert sorted(values_of_log(server, session)) == sorted(done)
        print(f"  {shim.hits()} stalls, {len(done)} jobs; p99 of /livez {percentile(alive, 0.99) * 1000:.1f} ms, of a run {percentile(runs, 0.99) * 1000:.1f} ms")


def failing_sync():
    """The nth sync fails with EIO and all behind it do, for each n until a sequence of writes comes through: from then on nothing is acknowledged, the
    process ends with its code and says why, and the next start has all that was acknowledged."""
    shim = Faults(SHIM)
    with tempfile.TemporaryFile() as log, Meshd(BINARY, "--devices", "2", log=log, launcher=shim.launcher()) as server:
        session, logged, arrays, numbers, site = new_session(server), [], {}, itertools.count(1), 0

        def store(size):
            data = os.urandom(size)
            status, _, made = server.ask("POST", f"/v1/arrays?dtype=uint8&shape={size}", data, {"Content-Type": "application/octet-stream"})
            assert status == 201, made
            arrays[made["id"]] = data

        def log_one():
            number = next(numbers)
            ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logged_count(number)))
            logged.append(number)

        writes = [lambda: store(1 << 20), log_one, lambda: store(100), lambda: ok(server.ask("POST", "/v1/sessions"), 201)]
        is_over = False
        while not is_over:
            site += 1
            assert site < 100, "the writes never come through"
            shim.set(failing_sync=site)
            refused_by, before = 0, shim.hits()
            for write in writes * 2:
                has_failed = shim.hits() > before
                try:
                    write()
                except (OSError, http.client.HTTPException, AssertionError):  # cut off, or told that it is not stored
                    refused_by += 1
                else:
                    assert not has_failed, f"a write was acknowledged that began after sync {site} had failed"
            is_over = shim.hits() == before
            if is_over:
                assert refused_by == 0, "a write was refused and no sync has failed"
                break
            assert server.process.wait(60) == FATAL, f"sync {site} has failed, and the server ended with {server.process.returncode}"
            assert "storage_failed" in server.end_of_log(), server.end_of_log()
            shim.set()
            server.start()
            ok(server.ask("POST", f"/v1/sessions/{session}/barrier"))
            found = values_of_log(server, session)  # its numbers are dense
            assert set(logged) <= set(found) and len(set(found)) == len(found), (logged, found)
            for array, data in arrays.items():
                assert server.ask("GET", f"/v1/arrays/{array}/data")[2] == data, array
        shim.set()
        assert site > 4, "the writes take more syncs than that"
        assert server.stop() == 0
        done = subprocess.run([BINARY, "fsck", "--data", server.folder + "/data"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        print(f"  each of {site - 1} syncs has failed, {len(logged)} jobs and {len(arrays)} arrays are as acknowledged")


def full_disk():
    """A real disk that is full: writes are 507, reads and runs go on, probes say why the server is not ready, DELETE works, and what it frees is
    there for the next write. What was stored is whole after a restart."""
    with SmallDisk(120) as disk:
        if disk.folder is None:
            tell_not_tried("a disk that is full: mounting is not allowed here")
            return SKIPPED
        fill_and_free(disk.folder)


def job_ends_on_full_disk():
    """A job that fails while no row finds room has failed for good: its client was told so, and it does not run again after a kill."""
    with SmallDisk(120) as disk:
        if disk.folder is None:
            tell_not_tried("a disk that is full: mounting is not allowed here")
            return SKIPPED
        with Meshd(BINARY, "--devices", "2", "--log-level", "off", data=disk.folder) as server:
            session = new_session(server)
            job = {"program": {"text": SPIN}, "arguments": [2_000_000_000], "deadline": 2}
            made = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", job, ASYNC), 202)["id"]
            disk.fill()
            until(lambda: server.ask("POST", "/v1/sessions")[0] == 507, "no row finds room")
            ended = until(lambda: (lambda seen: seen["state"] not in ("queued", "running") and seen)(ok(server.ask("GET", f"/v1/jobs/{made}"))), "the job ends", 60)
            assert (ended["state"], ended["error"]["code"]) == ("failed", "deadline_exceeded"), ended
            server.stop(signal.SIGKILL)
            disk.empty()
            server.start()
            again = ok(server.ask("GET", f"/v1/jobs/{made}"))
            assert (again["state"], again["attempt"]) == ("failed", 1), f"it had failed, and is {again}"


def fill_and_free(folder):
    binary, admin = {"Content-Type": "application/octet-stream"}, {"Authorization": "Bearer one"}
    tokens = tempfile.NamedTemporaryFile("w", prefix="meshd-tokens-")
    tokens.write("root one admin\n")
    tokens.flush()
    with Meshd(BINARY, "--devices", "2", "--tokens", tokens.name, "--principal-bytes", str(1 << 30), data=folder) as server:
        def ask(method, path, body=None, headers=None):
            return server.ask(method, path, body, {**admin, **(headers or {})})

        def full(answer):
            assert (answer[0], answer[2]["code"]) == (507, "disk_full"), answer
            assert server.process.poll() is None

        stored = {}
        for size in (1 << 20, 1 << 16, 1 << 12, 1 << 10, 1 << 2):  # the last ones find no room for a row
            for _ in range(10_000):
                data = os.urandom(size)
                answer = ask("POST", f"/v1/arrays?dtype=uint8&shape={size}", data, binary)
                if answer[0] != 201:
                    break
                stored[answer[2]["id"]] = data
            full(answer)
        one = next(iter(stored))
        full(ask("PUT", f"/v1/arrays/{one}/data", os.urandom(1 << 20), binary))
        # A row may find room in the log of the database, whose file is there.
        for answer, status in ((ask("POST", "/v1/sessions", {}), 201), (ask("POST", "/v1/run", SMALL, ASYNC), 202)):
            assert answer[0] == status or full(answer) is None
        full(ask("POST", "/v1/run", {**SMALL, "results": {"encoding": "array"}}))
        full(ask("POST", "/v1/admin/backup?name=one"))
        backup = pathlib.Path(folder, "data", "backups", "one")
        assert not backup.exists() or not list(backup.iterdir()), "a backup that found no room has left something"
        assert ok(ask("POST", "/v1/run", SMALL))["results"][0]["data"] == [2.0, 4.0]
        assert ask("GET", f"/v1/arrays/{one}/data")[2] == stored[one]
        said = until(lambda: (lambda answer: answer[0] == 503 and answer[2])(ask("GET", "/readyz")), "it is not ready").decode()
        assert "bytes are free on the data folder's disk" in said, said
        failed = {each["name"]: each["reason"] for each in server.ask("GET", "/health")[2]["checks"] if not each["ok"]}
        assert "disk" in failed and failed["disk"] in said, failed
        for array in list(stored)[:-20]:
            assert ask("DELETE", f"/v1/arrays/{array}")[0] == 204
            del stored[array]
        until(lambda: ask("POST", f"/v1/arrays?dtype=uint8&shape={1 << 20}", bytes(1 << 20), binary)[0] == 201, "there is room again")
        until(lambda: ask("GET", "/readyz")[0] == 200, "it is ready again")
        ok(ask("POST", "/v1/admin/backup?name=one"), 201)
        server.stop()
        server.start()
        for array, data in stored.items():
            assert ask("GET", f"/v1/arrays/{array}/data")[2] == data, array


# A NumPy program whose answer is so large as text, and one that logs as much.
def filler(name, elements):
    made = f"jnp.zeros(({elements},), jnp.float32) + x"
    text = {"answers": f"def f(x):\n    return {made}\n", "effects": f"def f(x):\n    y = {made}\n    log('y', y)\n    return x\n"}[name]
    return {"program": {"format": "numpy", "text": text}, "arguments": [1.0], "results": {"encoding": "base64"}}


def disk_full_of_rows():
    """What fills the disk is in the database: answers of jobs, then effects. Each DELETE works, before and after a restart and a kill -9, a backup can be
    taken elsewhere, the file gives back what is free, and work goes on."""
    sizes = (180_000, 6_000_000) if LONG else (180_000,)  # about 1 and 32 MB of text
    for kind, elements in itertools.product(("answers", "effects"), sizes):
        with SmallDisk(160 if elements < 1_000_000 else 480) as disk:
            if disk.folder is None:
                tell_not_tried("a disk that is full: mounting is not allowed here")
                return SKIPPED
            rows_fill_and_free(disk, kind, elements)
    for jobs, end in itertools.product((1, 3, 6), (None, signal.SIGTERM, signal.SIGKILL)):
        with SmallDisk(130) as disk:
            others_fill(disk, jobs, end)
    return None


def others_fill(disk, jobs, end):
    """Something else takes all the room at a moment when answers are in the log and not yet in the database; perhaps again while the server is down."""
    with Meshd(BINARY, "--devices", "2", "--memory", "2GB", "--warmup-bytes", "0", data=disk.folder) as server:
        session = new_session(server)
        for _ in range(jobs):
            ok(server.ask("POST", f"/v1/sessions/{session}/jobs", filler("answers", 180_000)))
        disk.fill()
        if end is not None:
            server.stop(end)
            disk.fill()
            server.start(ready="/v1/sessions")
        made = [job["id"] for job in ok(server.ask("GET", f"/v1/sessions/{session}/jobs"))["items"]]
        assert len(made) == jobs
        for job in made:
            assert server.ask("DELETE", f"/v1/jobs/{job}")[0] == 204, (jobs, end)
        assert server.ask("DELETE", f"/v1/sessions/{session}")[0] == 204, (jobs, end)


def rows_fill_and_free(disk, kind, elements):
    database = pathlib.Path(disk.folder, "data", "meshd.db")
    with Meshd(BINARY, "--devices", "2", "--memory", "2GB", data=disk.folder) as server:
        def fill(session):
            for number in range(1000):
                answer = server.ask("POST", f"/v1/sessions/{session}/jobs", filler(kind, elements))
                if answer[0] != 200:
                    assert (answer[0], answer[2]["code"]) == (507, "disk_full"), answer[:2]
                    return number
            raise AssertionError("the disk does not fill up")

        sessions = [new_session(server) for _ in range(2)]
        filled = sum(map(fill, sessions))
        assert filled >= 3, f"{filled} jobs fill the disk"
        disk.fill()
        largest = database.stat().st_size
        jobs = [job["id"] for job in ok(server.ask("GET", f"/v1/sessions/{sessions[0]}/jobs?limit=1000"))["items"]]
        for end in (signal.SIGTERM, signal.SIGKILL):
            server.stop(end)
            if end == signal.SIGTERM:
                disk.fill()  # what the log had, others take
            with tempfile.TemporaryDirectory() as elsewhere:
                if end == signal.SIGTERM:
                    subprocess.run([BINARY, "backup", f"{elsewhere}/copy", "--data", str(database.parent)], check=True, capture_output=True)
            server.start(ready="/v1/sessions")  # not ready: there is no room to write
            # Some of them before the second restart.
            for job in jobs[: len(jobs) // 2 + 1] if end == signal.SIGTERM else jobs:
                answer = server.ask("DELETE", f"/v1/jobs/{job}")
                assert answer[0] in (204, 404), (kind, elements, end, answer)
        for session in sessions:
            assert server.ask("DELETE", f"/v1/sessions/{session}")[0] == 204
        until(lambda: database.stat().st_size < largest // 3, f"the database gives back what it does not need of {largest} bytes", 120)
        until(lambda: server.ask("GET", "/readyz")[0] == 200, "it is ready again", 60)
        disk.empty()
        assert fill(new_session(server)) >= filled // 2, "there is as much room as before"


def second_server():
    """On the same data or port: refused with a line that says why, and the first goes on. A newer schema is refused and left alone."""
    with Meshd(BINARY, "--devices", "2") as server:
        def refused(data, listen, *words):
            run = subprocess.run([BINARY, "serve", "--data", data, "--listen", listen, "--devices", "2"], capture_output=True, text=True, timeout=60)
            said = run.stdout + run.stderr
            assert run.returncode not in (0, None) and run.returncode > 0, (run.returncode, said)
            for word in words:
                assert word in said, f"{word!r} is not in {said!r}"

        refused(server.folder + "/data", "127.0.0.1:0", "in use by another meshd")
        other = tempfile.mkdtemp(prefix="meshd-test-")
        try:
            refused(other + "/data", f"127.0.0.1:{server.port}", str(server.port), "in use")
            ok(server.ask("POST", "/v1/run", SMALL))
            session = new_session(server)
            server.stop()
            path = server.folder + "/data/meshd.db"
            version = _schema(path)
            _schema(path, version + 1)
            refused(server.folder + "/data", "127.0.0.1:0", f"version {version + 1}", f"up to {version}", "newer server")
            assert _schema(path) == version + 1, "the database was changed"
            _schema(path, version)
            server.start()
            ok(server.ask("GET", f"/v1/sessions/{session}"))
        finally:
            shutil.rmtree(other, ignore_errors=True)


def _schema(path, version=None):
    """The version of a database's schema, after it was set."""
    database = sqlite3.connect(path)
    try:
        if version is not None:
            database.execute(f"PRAGMA user_version = {version}")
            database.commit()
        return database.execute("PRAGMA user_version").fetchone()[0]
    finally:
        database.close()


FAULTS = [no_descriptors_left, no_threads_left, clock_jumps, told_to_end_under_load, stopped_for_a_while, stalled_disk, failing_sync, full_disk, disk_full_of_rows, job_ends_on_full_disk, second_server]


def main():
    failed, told = 0, []
    for fault in FAULTS:
        if sys.argv[3:] and fault.__name__ not in sys.argv[3:]:
            continue
        print(fault.__name__, flush=True)
        try:
            told.append(fault())
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
    print(f"{failed} failed")
    if told and all(each == SKIPPED for each in told) and not failed:
        return SKIPPED
    return 1 if failed or not told else 0


if __name__ == "__main__":
    sys.exit(main())
