"""A thousand clients that connect at once; and a crowd that waits: 64 clients of every kind that waits for something, and 48 uploads that trickle. Everybody else is served as if they
were not there. Under MESHD_LONG=1 (./dev check-long) the figures are judged, else only that there is an answer."""
import json
import os
import resource
import selectors
import socket
import sys
import threading
import time

from server import SPIN, Meshd

COUNT = 64
BURST = 1000
UPLOADS = 48
TRICKLE = 1331  # bytes a second, above the least that is asked for
UPLOAD_BYTES = 4_000_000
LONG = bool(os.environ.get("MESHD_LONG"))
SECONDS = 30 if LONG else 4

TAKES = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
  return %0#0 : tensor<f32>
}"""
SMALL = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"
ON_DEVICE_7 = {"axis_names": ["x"], "devices": [7]}


class Crowd:
    """Connections that have sent a request each and wait for their answers."""

    def __init__(self, server):
        self.server, self.sockets, self.uploads = server, [], []
        self.trickling = True

    def send(self, method, path, document=None):
        body = b"" if document is None else json.dumps(document).encode()
        kind = "" if document is None else "Content-Type: application/json\r\n"
        client = socket.create_connection(("127.0.0.1", self.server.port))
        client.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.sockets.append(client)

    def upload(self):
        client = socket.create_connection(("127.0.0.1", self.server.port))
        # Bytes that are in the socket's buffer from the start, and more than the front takes in by itself.
        client.sendall(f"POST /v1/arrays?dtype=uint8&shape={UPLOAD_BYTES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                       f"Content-Length: {UPLOAD_BYTES}\r\n\r\n".encode() + bytes(100_000))
        self.uploads.append(client)

    def trickle(self):
        while self.trickling:
            for client in self.uploads:
                client.sendall(bytes(TRICKLE))
            time.sleep(1)

    def answered(self):
        """How many have got an answer, or were cut off."""
        done = 0
        for client in self.sockets + self.uploads:
            client.setblocking(False)
            try:
                client.recv(1, socket.MSG_PEEK)
                done += 1
            except BlockingIOError:
                pass
            client.setblocking(True)
        return done

    def leave(self):
        self.trickling = False
        for client in self.sockets + self.uploads:
            client.close()


def session_that_is_busy(server):
    """A session with a job that does not end by itself."""
    session = server.ask("POST", "/v1/sessions", {})[2]["id"]
    spin = {"program": {"text": SPIN}, "arguments": [2_000_000_000]}
    status, _, job = server.ask("POST", f"/v1/sessions/{session}/jobs", spin, {"Prefer": "respond-async"})
    assert status == 202, job
    return session, job["id"]


def measure(requests):
    """Milliseconds that each kind of request took, sorted: {name: [..]}. Every request is answered with 2xx."""
    took = {name: [] for name, *_ in requests}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for name, *request in requests:
            begin = time.monotonic()
            status, _, body = request[0](*request[1:])
            took[name].append((time.monotonic() - begin) * 1000)
            assert 200 <= status < 300, (name, status, body)
            time.sleep(0.005)
    return {name: sorted(all_of) for name, all_of in took.items()}


def resident_threads(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def burst(server):
    """A thousand clients that connect at once are connected, and answered."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096) if most != resource.RLIM_INFINITY else 4096, most))
    clients, waiting, began = [], selectors.DefaultSelector(), time.monotonic()
    for _ in range(BURST):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", server.port))
        waiting.register(client, selectors.EVENT_WRITE)
        clients.append(client)
    while waiting.get_map():
        assert time.monotonic() - began < 30, f"{len(waiting.get_map())} of {BURST} clients are not connected"
        for key, _ in waiting.select(1):
            assert key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            waiting.unregister(key.fileobj)
    connected = time.monotonic() - began
    for client in clients:
        client.setblocking(True)
        client.settimeout(10)
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answered = [client.recv(1 << 12).startswith(b"HTTP/1.1 200 ") for client in clients]
    for client in clients:
        client.close()
    assert all(answered), f"{answered.count(False)} of {BURST} clients got another answer"
    print(f"{BURST} clients connected in {connected * 1000:.0f} ms, and were answered in {(time.monotonic() - began) * 1000:.0f} ms")
    if LONG:
        assert connected <= 1


def main():
    with Meshd(sys.argv[1], "--devices", "8") as server:
        burst(server)
        crowd = Crowd(server)
        busy, job = session_that_is_busy(server)
        closing = [session_that_is_busy(server) for _ in range(2)]
        quiet = server.ask("POST", "/v1/sessions", {})[2]["id"]
        feeding = server.ask("POST", "/v1/sessions", {})[2]["id"]
        for i in range(COUNT):
            crowd.send("POST", f"/v1/sessions/{busy}/barrier")
            crowd.send("GET", f"/v1/sessions/{quiet}/callbacks?wait=60")
            crowd.send("GET", f"/v1/sessions/{quiet}/outfeed?wait=60")
            crowd.send("GET", f"/v1/jobs/{job}?wait=60")
            crowd.send("DELETE", f"/v1/sessions/{closing[i % 2][0]}")
            crowd.send("POST", f"/v1/sessions/{feeding}/jobs", {"program": {"text": TAKES}, "arguments": [1.0], "mesh": ON_DEVICE_7})
        for _ in range(UPLOADS):
            crowd.upload()
        trickle = threading.Thread(target=crowd.trickle)
        trickle.start()
        time.sleep(1)
        before = crowd.answered()
        run = {"program": {"text": SMALL}, "arguments": [[1, 2]], "mesh": {"axis_names": ["x"], "devices": [5]}}
        raw = {"Content-Type": "application/octet-stream"}
        took = measure([("livez", server.ask, "GET", "/livez"), ("readyz", server.ask, "GET", "/readyz"),
                        ("health", server.ask, "GET", "/health"), ("metrics", server.ask, "GET", "/metrics"),
                        ("run", server.ask, "POST", "/v1/run", run),
                        ("upload", server.ask, "POST", "/v1/arrays?dtype=uint8&shape=2000000&durability=memory", bytes(2_000_000), raw)])
        for name, all_of in took.items():
            print(f"{name}: {len(all_of)} requests, median {all_of[len(all_of) // 2]:.1f} ms, p99 {all_of[len(all_of) * 99 // 100]:.1f} ms, "
                  f"most {all_of[-1]:.1f} ms")
        print(f"{len(crowd.sockets)} clients wait, {UPLOADS} uploads trickle, {before} were answered before the others were served; "
              f"{resident_threads(server)} threads")
        assert before <= COUNT, "those who wait are waited for"
        assert crowd.answered() <= COUNT + UPLOADS, "uploads above the least rate are not cut off"
        if LONG:
            assert took["livez"][len(took["livez"]) * 99 // 100] <= 50
            assert took["run"][-1] <= 100
            assert took["upload"][-1] <= 1000
        crowd.leave()
        trickle.join()
        # Who left holds nothing: the handlers end, but for those whose jobs go on by their sessions.
        deadline = time.monotonic() + 30
        while True:
            metrics = server.ask("GET", "/metrics")[2].decode()
            handlers = int(next(line for line in metrics.splitlines() if line.startswith("meshd_http_handlers ")).split()[1])
            if handlers <= COUNT:
                break
            assert time.monotonic() < deadline, f"{handlers} handlers are left"
            time.sleep(0.1)
    return 0


sys.exit(main())
