#!/usr/bin/env python3
"""Times small programs of every kind of op on JAX in this process and on a running meshd, in turn, and prints ratios.

    python3 survey.py --url http://127.0.0.1:8080 [-k REGEX] [--written | --loops | --devices 8]     # needs jax, numpy

The programs of compare.py are few and chosen; these are many and plain, so that a kernel or a reshard that is slow shows itself: on one
device those of plain_rows.py, or with `--written` of written_rows.py and `--loops` of loop_rows.py, as people write them; on eight those of sharded_rows.py. The ratio is
JAX's time over the `run` of Server-Timing, medians of rounds in turn; above 1 meshd was faster. Arguments are stored beforehand, results
dropped; `--check` compares the results of one run.
"""
import argparse
import base64
import http.client
import json
import os
import re
import socket
import statistics
import time
import urllib.parse

IDLE = 5  # seconds after which a server may close a connection


class Meshd:
    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url)
        self.connection, self.used = None, 0

    def send(self, method, path, body=None, kind="application/json"):
        if time.perf_counter() - self.used > IDLE:
            self.connection = http.client.HTTPConnection(self.address.hostname, self.address.port)
            self.connection.connect()
            self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.request(method, path, body, {"Content-Type": kind})
        answer = self.connection.getresponse()
        data = answer.read()
        self.used = time.perf_counter()
        if answer.status >= 300:
            raise SystemExit(data.decode())
        return answer, data

    def store(self, array):
        shape = ",".join(map(str, array.shape))
        path = f"/v1/arrays?dtype={array.dtype}&shape={shape}&durability=memory"
        _, text = self.send("POST", path, array.tobytes(), "application/octet-stream")
        return json.loads(text)["id"]

    def run(self, body):
        """Milliseconds of the run."""
        answer, _ = self.send("POST", "/v1/run", body)
        return float(re.search(r"\brun;[^,]*dur=([\d.]+)", answer.getheader("Server-Timing")).group(1))


class Program:
    """One row, ready on both sides."""

    def __init__(self, meshd, jitted, arguments):
        self.meshd = meshd
        lowered = jitted.lower(*arguments)
        self.stored = [meshd.store(np.asarray(leaf)) for leaf in jax.tree.leaves(arguments)]
        self.request = {"program": {"format": "stablehlo", "text": lowered.as_text()}, "arguments": [{"array": i} for i in self.stored],
                        "results": {"encoding": "none"}}
        self.body = json.dumps(self.request)
        self.compiled = lowered.compile()
        self.placed = jax.block_until_ready(jax.device_put(tuple(arguments), self.compiled.input_shardings[0]))

    def ours(self):
        return self.meshd.run(self.body)

    def theirs(self):
        begun = time.perf_counter()
        jax.block_until_ready(self.compiled(*self.placed))
        return 1e3 * (time.perf_counter() - begun)

    def difference(self):
        """The largest difference of a result's element, as a part of the result's largest."""
        _, text = self.meshd.send("POST", "/v1/run", json.dumps({**self.request, "results": {"encoding": "base64"}}))
        largest = 0.0
        for made, expected in zip(json.loads(text)["results"], jax.tree.leaves(self.compiled(*self.placed))):
            expected = np.asarray(expected)
            got = np.frombuffer(base64.b64decode(made["base64"]), expected.dtype).reshape(expected.shape)
            wide = np.complex128 if np.iscomplexobj(got) else np.float64
            scale = np.abs(expected.astype(wide)).max(initial=1e-30)
            largest = max(largest, np.abs(got.astype(wide) - expected.astype(wide)).max(initial=0) / scale)
        return largest

    def drop(self):
        for each in self.stored:
            self.meshd.send("DELETE", f"/v1/arrays/{each}")


def medians(program, seconds):
    """Of meshd's and JAX's milliseconds, in rounds that take turns."""
    times = {program.ours: [], program.theirs: []}
    for _ in range(3):
        for call, took in times.items():
            stop = time.perf_counter() + seconds / 6
            at_least = len(took) + 1
            while time.perf_counter() < stop or len(took) < at_least:
                took.append(call())
    return [statistics.median(took) for took in times.values()]


def main(given, rows):
    meshd, ratios = Meshd(given.url), []
    print(f"{'':32}{'meshd':>10}{'JAX':>10}{'ratio':>8}")
    for name, (jitted, arguments) in rows.items():
        if not re.search(given.pattern, name):
            continue
        program = Program(meshd, jitted, arguments)
        ours, theirs = medians(program, given.seconds)
        ratios.append(theirs / ours)
        difference = f"  differs by {program.difference():.1e}" if given.check else ""
        print(f"{name:32}{ours * 1e3:7.0f} us{theirs * 1e3:7.0f} us{ratios[-1]:8.2f}{difference}", flush=True)
        program.drop()
    below = sum(ratio < 1 for ratio in ratios)
    capped = statistics.geometric_mean([min(ratio, 4) for ratio in ratios])
    print(f"{len(ratios)} rows, {below} below 1; geometric mean {statistics.geometric_mean(ratios):.2f}, {capped:.2f} with ratios of at most 4")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("-k", dest="pattern", default="", help="rows whose names match")
    parser.add_argument("--seconds", type=float, default=1, help="for each row")
    parser.add_argument("--devices", type=int, choices=(1, 8), default=1)
    parser.add_argument("--written", action="store_true", help="on one device: whole small programs, not an op or two")
    parser.add_argument("--loops", action="store_true", help="on one device: programs whose time is a loop of small steps")
    parser.add_argument("--check", action="store_true", help="how far the results are from JAX's")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={options.devices}"
    import jax
    import numpy as np
    if options.devices == 1:
        if options.written:
            from written_rows import ROWS
        elif options.loops:
            from loop_rows import ROWS
        else:
            from plain_rows import ROWS
        main(options, {name: (jax.jit(function, keep_unused=True), arguments) for name, (function, *arguments) in ROWS.items()})
    else:
        from sharded_rows import ROWS
        main(options, {name: (row.jitted(), row.arguments) for name, row in ROWS.items()})
