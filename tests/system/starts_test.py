#!/usr/bin/env python3
"""starts_test.py BINARY STORAGE_BENCH: how long a start takes, with an empty folder and with 10,000 arrays and 100,000 finished jobs, after SIGTERM
and after SIGKILL with jobs that run and wait, and that durable effects come at their rate. Judged by MESHD_LONG=1 (./dev check-long) alone; without it nothing is run."""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from server import SPIN, Meshd, ok, until

BINARY, BENCH = sys.argv[1:3]
STARTS = 5
WAITING = 100  # jobs that a kill finds waiting behind those that run


def start(name, data, limit):
    """Ready in time: from the start of the process to the first 200 of /readyz, the median of five."""
    took = []
    for _ in range(STARTS):
        server = Meshd(BINARY, data=data)
        began = time.monotonic()
        server.start()
        took.append(time.monotonic() - began)
        ok(server.ask("GET", "/v1/jobs?limit=1"))
        assert server.stop() == 0
    print(f"{name}: ready after {', '.join(f'{each:.3f}' for each in took)} s; {limit} s are promised")
    return statistics.median(took) <= limit


def begin_jobs(server):
    """One that does not end by itself on each device, and behind them those that wait: their ids."""
    ids = []
    for number in range(8 + WAITING):
        job = {"program": {"text": SPIN}, "arguments": [2_000_000_000], "mesh": {"axis_names": ["x"], "devices": [number % 8]}}
        ids.append(ok(server.ask("POST", "/v1/run", job, {"Prefer": "respond-async"}), 202)["id"])
    until(lambda: any(state_of(server, job) == "running" for job in ids), "a job runs")
    return ids


def state_of(server, job):
    return ok(server.ask("GET", f"/v1/jobs/{job}"))["state"]


def start_after_kill(name, data, limit):
    """As start(), where SIGKILL has ended the server in the middle of work: recovery queues that again before the server is ready."""
    took = []
    with Meshd(BINARY, data=data) as server:
        for _ in range(STARTS):
            ids = begin_jobs(server)
            server.stop(signal.SIGKILL)
            began = time.monotonic()
            server.start()
            took.append(time.monotonic() - began)
            states = [state_of(server, job) for job in ids]
            assert set(states) <= {"queued", "running"} and states.count("queued") >= WAITING // 2, states
            for job in ids:
                ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
            until(lambda ids=ids: all(state_of(server, job) == "cancelled" for job in ids), "what was cancelled is over")
    print(f"{name}: ready after SIGKILL after {', '.join(f'{each:.3f}' for each in took)} s; {limit} s are promised")
    return statistics.median(took) <= limit


def rates():
    """Durable effects a second, and the acknowledgement of 50,000 a second that come evenly, as ./dev bench storage measures them. No commit passes a checkpoint, so
    that where the disk needs more for the bytes of one than the figure, the figure is the disk's."""
    done = subprocess.run([BENCH], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)

    def found(pattern):
        return float(re.search(pattern, done.stdout, re.MULTILINE).group(1))

    rate = found(r"^16 sessions x 8 under way, 8 effects each: (\d+) effects/s")
    asked = found(r"asked for: (\d+) effects/s")
    p99 = found(r"asked for: .* p99 ([\d.]+) ms")
    disk = found(r"^raw: 8 MiB written in pages and synced, p50 ([\d.]+) ms")
    print(f"{rate:.0f} effects/s, 50000 are promised; p99 {p99} ms, 10 are promised or the {disk} ms of the disk")
    return rate >= 50_000 and asked >= 49_000 and p99 <= max(10, disk)


def main():
    if "MESHD_LONG" not in os.environ:
        print("figures are judged by ./dev check-long")
        return 77
    with tempfile.TemporaryDirectory(prefix="meshd-test-") as folder:
        empty, full = pathlib.Path(folder, "empty"), pathlib.Path(folder, "full")
        for made in (empty, full):
            made.mkdir()
        subprocess.run([BENCH, "--fill", full / "data"], check=True)
        held = {"empty": start("an empty folder", str(empty), 0.3), "full": start("10,000 arrays and 100,000 jobs", str(full), 2),
                "killed": start_after_kill("10,000 arrays and 100,000 jobs", str(full), 2), "rates": rates()}
    assert all(held.values()), held
    return 0


sys.exit(main())
