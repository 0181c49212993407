#!/usr/bin/env python3
"""allocations_test.py BINARY SHIM [PATH]: the Nth allocation of a request fails, for many N, on ten paths of requests. The request fails
alone: it is answered, or its connection ends; the server goes on or, where a library ends the process, starts again; what it had
acknowledged is there, no memory stays taken in its ledger, and nothing is counted as open or running. The last two paths are runs of
two processes, of which the first has no memory; without MPI they are left out. MESHD_LONG=1 (./dev check-long): 2,900 failures; LONG=1: every
allocation that a request makes."""
import concurrent.futures
import http.client
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

from hosts_test import MPIRUN, has_mpi, ranks_of
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
    """Ten requests. Each is asked with a number, so that nothing of it is known from the one before; gives (status, headers, body)."""

    def __init__(self, server):
        self.server = server
        self.session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
        self.array = ok(self.upload(0), 201)["id"]
        ok(server.ask("PUT", "/v1/models/m", MODEL), 201)
        ok(self.job(0))

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

    def infer(self, number):
        """Three at once, of which two or three make a batch: the answer that is least like what it should be."""
        with concurrent.futures.ThreadPoolExecutor(3) as clients:
            return max(clients.map(self.infer_one, [number, number + 1, number + 2]), key=lambda answer: 0 if answer[0] == 200 else 1 if refusal(answer[0], answer[2]) else 2)

    def infer_one(self, number):
        try:
            answer = self.server.ask("POST", "/v2/models/m/infer", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [number, 1, 2, 3]}]})
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__, None, None
        assert answer[0] != 200 or answer[2]["outputs"][0]["data"] == [2 * number, 2, 4, 6], answer
        return answer

    def events(self, _):
        """A stream that is left after its first event."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request("GET", f"/v1/sessions/{self.session}/events")
            answer = connection.getresponse()
            if answer.status != 200:
                return answer.status, answer.headers, answer.read()
            lines = []
            while not any(line.startswith(b"data: ") for line in lines):
                lines.append(answer.readline())
                if not lines[-1]:
                    raise http.client.IncompleteRead(b"".join(lines))
            assert b"event: effect\n" in lines, lines
            return answer.status, answer.headers, None
        finally:
            connection.close()

    def hosts(self, number, constant=0):
        """A run on the devices of two processes, with a stored argument that both have a part of, effects of both, and results that stay with them."""
        body = {"program": {"text": ACROSS.replace("NUMBER", str(constant))}, "arguments": [[[number, i] for i in range(8)], {"array": self.array}],
                "mesh": {"axis_names": ["x"], "devices": [0, 1, 2, 3]}, "in_shardings": [{"spec": ["x"]}, {"spec": ["x"]}],
                "results": {"encoding": "array"}, "callbacks": {"0": {"effect": "log", "name": "v"}}}
        return self.server.ask("POST", "/v1/run", body)

    def plans(self, number):
        """The same of a program that neither process knows."""
        return self.hosts(number, number)

# Each device logs what it has.
ACROSS = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x2xf32>, %b: tensor<100000xui8>) -> (tensor<8x2xf32>, tensor<f32>, tensor<100000xui8>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%l: tensor<2x2xf32>) {
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%l) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<2x2xf32>) -> ()
    %u = stablehlo.add %l, %l : tensor<2x2xf32>
    sdy.return %u : tensor<2x2xf32>
  } : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %z = stablehlo.constant dense<NUMBER.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.add %b, %b : tensor<100000xui8>
  return %0, %1, %2 : tensor<8x2xf32>, tensor<f32>, tensor<100000xui8>
}"""
# A batch of three runs at once, others after 5 ms; one at a time, so that it is missed if it is taken to run for ever.
MODEL = {"program": {"format": "numpy", "text": "def f(x):\n  return x * 2"}, "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 4]}], "outputs": ["y"],
         "max_batch_size": 8, "batching": {"max_queue_delay_microseconds": 5000, "preferred_batch_sizes": [3], "timeout_microseconds": 20_000_000, "instances": 1}}
# Failures of each in check-long.
PATHS = {"upload": 300, "numbers": 300, "download": 300, "run": 500, "job": 400, "lists": 200, "infer": 400, "events": 200, "hosts": 400, "plans": 300}
ACROSS_PROCESSES = ("hosts", "plans")
# Debian's nlohmann-json ends the process where an allocation of a constructor or of a destructor of its own fails: one failure in a hundred of
# all, and by chance several of a few.
ENDINGS, FEW_ENDINGS = 0.1, 6  # of the failures, at most; of a few
ENDED = ("BrokenPipeError", "ConnectionRefusedError", "ConnectionResetError", "RemoteDisconnected", "IncompleteRead", "BadStatusLine")


def ledger(server):
    """Bytes that requests hold."""
    lines = server.ask("GET", "/metrics")[2].decode().splitlines()
    held = {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("meshd_memory_held_bytes")}
    return sum(held[f'meshd_memory_held_bytes{{account="{name}"}}'] for name in ("requests", "downloads", "events", "jobs"))


def open_counts(server):
    """What is counted as open or running now, but for this request itself."""
    lines = [line.split() for line in server.ask("GET", "/metrics")[2].decode().splitlines()]
    counts = {line[0]: float(line[1]) for line in lines if line[0].startswith(COUNTED)}
    for own in ("meshd_http_requests_in_flight", 'meshd_http_connections{state="reading"}'):
        counts[own] -= 1
    return {name: count for name, count in counts.items() if count != 0 and "idle" not in name}


COUNTED = ("meshd_http_requests_in_flight", "meshd_http_handlers", "meshd_http_connections{", "meshd_job_queue_depth", "meshd_jobs_running", "meshd_device_queue_depth{")


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
            status, body = self.answer(number)
        finally:
            self.shim.fail(0)
        assert status in (200, 201) or refusal(status, body), f"{what}: {status} {body}"
        if status in ENDED and self.has_ended():
            status = self.start_again()
        self.note(status, body)
        again, body = self.answer(number)
        if again in ENDED and self.has_ended():  # by what follows an answer
            status = self.start_again()
            again, body = self.answer(number)
        assert again in (200, 201), f"{what} had failed; the same request again: {again} {body}"
        self.note(again, body)
        self.told[status] = self.told.get(status, 0) + 1

    def answer(self, number):
        try:
            status, _, body = self.ask(number)
            return status, body
        except (OSError, http.client.HTTPException) as error:  # its connection was ended
            return type(error).__name__, None

    def start_again(self):
        self.server.start(ready="/v2/health/ready")
        return "the process ended"

    def stop(self):
        if self.name not in ACROSS_PROCESSES:
            return self.server.stop()
        os.kill(ranks_of(self.server)[0], signal.SIGTERM)
        return self.server.process.wait(60)

    def has_ended(self):
        if self.name in ACROSS_PROCESSES:
            try:
                return self.server.ask("GET", "/livez")[0] != 200
            except OSError:  # mpirun ends some time after the process that it has started
                return self.server.process.wait(60) is not None
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
        if self.name in ACROSS_PROCESSES:  # what a rank says where it ends all of them itself
            said = pathlib.Path(f"/proc/self/fd/{self.server.log.fileno()}").read_bytes()
            assert b"rank 0: " not in said, said[-4000:].decode(errors="replace")
        until(lambda: ledger(self.server) == 0, "all that requests held is given back")
        until(lambda: not open_counts(self.server), f"nothing is open or runs: {open_counts(self.server)}")
        self.stop()
        assert self.server.process.returncode == 0, self.server.process.returncode
        self.server.start()
        for array, version in self.made.items():
            assert ok(self.server.ask("GET", f"/v1/arrays/{array}"))["version"] == version
        # The log has each job that was answered, once.
        if self.name == "job":
            items = ok(self.server.ask("GET", f"/v1/sessions/{self.paths.session}/effects?limit=1000"))["items"]
            assert [item["sequence"] for item in items] == list(range(1, len(items) + 1))


# What mpirun starts: the shim is there for rank 0.
OF_THE_FIRST = 'if [ "$PMIX_RANK" = 0 ]; then exec {} "$@"; fi; exec "$@"'


def main():
    chosen = random.Random(7)
    for name, count in PATHS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        if name in ACROSS_PROCESSES and not has_mpi(BINARY):
            continue
        shim = Allocations()
        launcher = shim.launcher() if name not in ACROSS_PROCESSES else [*MPIRUN, "2", "sh", "-c", OF_THE_FIRST.format(" ".join(shim.launcher())), "sh"]
        kept = {"log": tempfile.TemporaryFile(), "level": "err"} if name in ACROSS_PROCESSES else {"log": None, "level": "off"}
        with Meshd(BINARY, "--devices", "4", "--log-level", os.environ.get("ALLOCATION_LOG", kept["level"]), launcher=launcher, log=kept["log"]) as server:
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
