"""One principal floods 20 sessions and /v1/run; another one's small job takes at most twice its time alone plus a time slice. Under
MESHD_LONG=1 (./dev check-long) the figures are judged, else only that the small jobs end with the right numbers. And one sends large bodies slowly, which
leaves the others their memory."""
import contextlib
import os
import socket
import statistics
import sys
import tempfile
import threading
import time

from server import Meshd, ok, until

LONG = bool(os.environ.get("MESHD_LONG"))
ROUNDS = 40 if LONG else 3
SLICE = 0.005  # seconds: a run has its devices for 2 ms, and for 4 ms in the middle of a step
SESSIONS = 20
ON_ALL = {"axis_names": ["x"], "axis_sizes": [8]}

# %n iterations over some numbers, on one device or sharded over "x".
LOOP = """module {{ {mesh}
func.func @main(%n: tensor<i32>, %a: tensor<{size}xf32>{sharding}) -> tensor<f32> {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<{size}xf32> cond {{
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : tensor<{size}xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<{size}xf32>
  }}
  %s = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<{size}xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}} }}"""


def loop(size, is_cut=False):
    mesh = 'sdy.mesh @mesh = <["x"=8]>' if is_cut else ""
    return LOOP.format(size=size, mesh=mesh, sharding=' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}' if is_cut else "")


def on(device):
    return {"axis_names": ["x"], "devices": [device]}


class Principal:
    def __init__(self, server, token):
        self.server, self.headers = server, {"Authorization": f"Bearer {token}"}

    def ask(self, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, {**self.headers, **(headers or {})})

    def numbers(self, size):
        return ok(self.ask("POST", f"/v1/arrays?dtype=float32&shape={size}", bytes(4 * size), {"Content-Type": "application/octet-stream"}), 201)["id"]


class Flood:
    """Endless jobs in 20 sessions, on all devices and on each, and runs beside them."""

    def __init__(self, server):
        self.client, self.server = Principal(server, "one"), server
        array = self.client.numbers(1 << 20)
        self.jobs, self.is_on = [], True
        for n in range(SESSIONS):
            session = ok(self.client.ask("POST", "/v1/sessions", {}), 201)["id"]
            # The first four take the slots of the background.
            body = {"program": {"text": loop(1 << 20, n == 0)}, "arguments": [2_000_000_000, {"array": array}], "reshard": True,
                    **({} if n == 0 else {"mesh": on(n % 8)})}
            self.jobs.append(ok(self.client.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"])
        run = {"program": {"text": loop(1 << 20)}, "arguments": [200, {"array": array}], "mesh": on(0)}
        self.threads = [threading.Thread(target=self.keep_asking, args=(run,)) for _ in range(4)]
        for thread in self.threads:
            thread.start()
        until(lambda: ok(self.client.ask("GET", f"/v1/jobs/{self.jobs[0]}")).get("progress", {}).get("steps_done", 0), "the flood runs")

    def keep_asking(self, run):
        while self.is_on:
            status, _, body = self.client.ask("POST", "/v1/run", run)
            assert status == 200, body

    def end(self):
        self.is_on = False
        for job in self.jobs:
            self.client.ask("DELETE", f"/v1/jobs/{job}")
        for thread in self.threads:
            thread.join()


def seconds(ask):
    """Of each round."""
    took = []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        assert ask()["results"][0]["data"] == 0.0, "tanh of nothing"
        took.append(time.monotonic() - begin)
    return took


def background(client, session, body):
    job = ok(client.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]
    seen = ok(client.ask("GET", f"/v1/jobs/{job}?wait=60"))
    assert seen["state"] == "done", seen
    return seen["answer"]


def held_by_requests(server):
    line = 'meshd_memory_held_bytes{account="requests"} '
    return next(int(found[len(line):]) for found in server.ask("GET", "/metrics", headers={"Authorization": "Bearer three"})[2].decode().splitlines() if found.startswith(line))


def slow_bodies(tokens):
    with Meshd(sys.argv[1], "--devices", "8", "--memory", "256MB", "--tokens", tokens) as server:
        whole = 256 * 1_000_000 // 32 * 4  # what all requests may hold
        head = "POST /v1/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\nContent-Length: 20000000\r\n\r\n"
        clients = []
        for _ in range(60):
            client = socket.create_connection(("127.0.0.1", server.port))
            with contextlib.suppress(OSError):  # refused while it sends
                client.sendall(head.encode() + b" " * 900_000)
            clients.append(client)
        until(lambda: held_by_requests(server) > whole // 2, "the slow bodies hold what they may")
        assert held_by_requests(server) < whole * 4 // 5
        body = {"program": {"format": "numpy", "text": "def f(x): return x.sum()"}, "arguments": [[0.5] * 50_000]}
        for _ in range(20):
            assert ok(Principal(server, "two").ask("POST", "/v1/run", body))["results"][0]["data"] == 25_000.0
        status, _, refusal = Principal(server, "one").ask("POST", "/v1/run", {**body, "arguments": [[0.5] * 1_000_000]})
        assert (status, refusal["code"]) == (503, "memory_full") and "of the same principal" in refusal["detail"], refusal
        for client in clients:
            client.close()


def main():
    folder = tempfile.mkdtemp(prefix="meshd-test-")
    with open(folder + "/tokens", "w") as tokens:
        tokens.write("flood one\nsmall two\nwatch three admin\n")
    slow_bodies(folder + "/tokens")
    with Meshd(sys.argv[1], "--devices", "8", "--tokens", folder + "/tokens") as server:
        small = Principal(server, "two")
        array = small.numbers(1 << 16)
        session = ok(small.ask("POST", "/v1/sessions", {}), 201)["id"]
        body = {"program": {"text": loop(1 << 16)}, "arguments": [500, {"array": array}], "mesh": on(0)}
        kinds = {
            "a run": lambda: ok(small.ask("POST", "/v1/run", body)),
            "a job that is waited for": lambda: ok(small.ask("POST", f"/v1/sessions/{session}/jobs", body)),
            "a job in the background": lambda: background(small, session, body),
        }
        alone = {kind: seconds(ask) for kind, ask in kinds.items()}
        flood = Flood(server)
        try:
            beside = {kind: seconds(ask) for kind, ask in kinds.items()}
        finally:
            flood.end()
        for kind in kinds:
            before, after = statistics.median(alone[kind]), statistics.median(beside[kind])
            print(f"{kind}: {before * 1000:.1f} ms alone, {after * 1000:.1f} ms beside the flood ({after / before:.2f} times), "
                  f"most {max(beside[kind]) * 1000:.1f} ms")
            if LONG:
                assert after <= 2 * before + SLICE, f"{kind} waits for others"
    return 0


sys.exit(main())
