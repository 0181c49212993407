#!/usr/bin/env python3
"""allocations_test.py BINARY SHIM [PATH]: the Nth allocation of a request fails, for many N, on six paths of requests. The request fails
alone: it is answered, or its connection ends; the server goes on or, where a library ends the process, starts again; what it had
acknowledged is there, and no memory stays taken in its ledger. MESHD_LONG=1 (./dev check-long): 2,000 failures; LONG=1: every allocation that a request makes."""
import http.client
import os
import random
import subprocess
import sys

from server import Meshd, logging, ok, until
from shim import Shim

BINARY, SHIM = sys.argv[1:3]
LONG, LONGEST = "MESHD_LONG" in os.environ, os.environ.get("LONG") == "1"
RAW = {"Content-Type": "application/octet-stream"}
NUMPY = "def f(x, w):\n    for i in range({n}):\n        x = jnp.tanh(x @ w) + {n}\n    return x, x.sum()"


class Allocations(Shim):
    """Of a server: allocation_shim.cpp."""

    def __init__(self):
        super().__init__(SHIM, 3)

    def fail(self, number):
        self.put(0, number)

    def count(self):
        return self.get(1)


class Paths:
    """Six requests. Each is asked with a number, so that nothing of it is known from the one before; gives (status, headers, body)."""

    def __init__(self, server):
        self.server = server
        self.session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
        self.array = ok(self.upload(0), 201)["id"]

    def upload(self, number):
        return self.server.ask("POST", "/v1/arrays?dtype=uint8&shape=100000", bytes([number % 256]) * 100_000, RAW)

    def numbers(self, number):
        return self.server.ask("POST", f"/v1/arrays?name=n{number % 7}", {"dtype": "float32", "shape": [64, 2], "data": [[number, i] for i in range(64)]})

    def download(self, _):
        return self.server.ask("GET", f"/v1/arrays/{self.array}/data", headers={"Accept": "application/json"})

    def run(self, number):
        body = {"program": {"format": "numpy", "text": NUMPY.format(n=number % 1000)}, "arguments": [[[1.0, 2.0]] * 8, [[0.1, 0.2], [0.3, 0.4]]],
                "mesh": {"axis_names": ["x"], "devices": [0, 1, 2, 3]}}
        return self.server.ask("POST", "/v1/run", body)

    def job(self, number):
        return self.server.ask("POST", f"/v1/sessions/{self.session}/jobs", logging(number))

    def lists(self, _):
        return self.server.ask("GET", "/v1/arrays?limit=50")


PATHS = {"upload": 300, "numbers": 300, "download": 300, "run": 500, "job": 400, "lists": 200}  # failures of each in check-long
# Debian's nlohmann-json ends the process where an allocation of a constructor or of a destructor of its own fails: one failure in a hundred of
# all, and by chance several of a few.
ENDINGS, FEW_ENDINGS = 0.1, 6  # of the failures, at most; of a few
ENDED = ("BrokenPipeError", "ConnectionResetError", "RemoteDisconnected", "IncompleteRead", "BadStatusLine")


def ledger(server):
    """Bytes that requests hold."""
    lines = server.ask("GET", "/metrics")[2].decode().splitlines()
    held = {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("meshd_memory_held_bytes")}
    return sum(held[f'meshd_memory_held_bytes{{account="{name}"}}'] for name in ("requests", "downloads", "events", "jobs"))


def refusal(status, body):
    """Whether it is an answer for want of memory, or a connection that ended."""
    return status in (503, 507) or status in ENDED or isinstance(body, dict) and body.get("code") == "memory_exceeded"


class Failures:
    """Of one path, against a server of its own."""

    def __init__(self, name, server, shim):
        self.name, self.server, self.shim = name, server, shim
        self.paths, self.told, self.made = Paths(server), {}, {}
        self.ask = getattr(self.paths, name)

    def allocations(self):
        """Of a request when all is warm."""
        for number in range(3):
            assert self.ask(number)[0] in (200, 201), self.ask(number)
        before = self.shim.count()
        self.ask(3)
        return self.shim.count() - before

    def one(self, number, nth):
        what = f"{self.name}: allocation {nth}"
        self.shim.fail(nth)
        try:
            status, _, body = self.ask(number)
        except (OSError, http.client.HTTPException) as error:  # its connection was ended
            status, body = type(error).__name__, None
        finally:
            self.shim.fail(0)
        assert status in (200, 201) or refusal(status, body), f"{what}: {status} {body}"
        if status in ENDED and self.has_ended():
            status = "the process ended"
            self.server.start()
        self.told[status] = self.told.get(status, 0) + 1
        self.note(status, body)
        try:
            status, _, body = self.ask(number)
        except OSError as error:
            status, body = type(error).__name__, None
        assert status in (200, 201), f"{what} had failed; the same request again: {status} {body}"
        self.note(status, body)

    def has_ended(self):
        try:
            return self.server.process.wait(0.1) is not None
        except subprocess.TimeoutExpired:
            return False

    def note(self, status, body):
        if status == 201 and body.get("id", "").startswith("arr_"):
            self.made[body["id"]] = body["version"]

    def judge(self):
        told = ", ".join(f"{count} x {status}" for status, count in sorted(self.told.items(), key=str))
        print(f"{self.name}: {told}", flush=True)
        count = sum(self.told.values())
        assert self.told.get("the process ended", 0) <= max(FEW_ENDINGS, ENDINGS * count), "it ends too often"
        until(lambda: ledger(self.server) == 0, "all that requests held is given back")
        self.server.stop()
        assert self.server.process.returncode == 0, self.server.process.returncode
        self.server.start()
        for array, version in self.made.items():
            assert ok(self.server.ask("GET", f"/v1/arrays/{array}"))["version"] == version
        # The log has each job that was answered, once.
        if self.name == "job":
            items = ok(self.server.ask("GET", f"/v1/sessions/{self.paths.session}/effects?limit=1000"))["items"]
            assert [item["sequence"] for item in items] == list(range(1, len(items) + 1))


def main():
    chosen = random.Random(7)
    for name, count in PATHS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        shim = Allocations()
        with Meshd(BINARY, "--devices", "4", "--log-level", os.environ.get("ALLOCATION_LOG", "off"), launcher=shim.launcher()) as server:
            failures = Failures(name, server, shim)
            most = failures.allocations()
            which = range(1, most + 1)
            if not LONGEST:
                which = sorted(chosen.sample(which, min(most, count if LONG else count // 10)))
            for number, nth in enumerate(which, start=4):
                failures.one(number, nth)
            print(f"{name}: {most} allocations")
            failures.judge()
    return 0


sys.exit(main())
