"""A model for many clients at once, beside JAX behind FastAPI: models_bench.py BINARY PYTHON [SECONDS].

The digits model, one image a request, 64 clients on kept connections, each of which asks again once it has its answer. PYTHON has jax, fastapi
and uvicorn; the peer runs the same function, jitted, in one process, as raw bytes in and out. Both are asked in turn in one run, by the same
clients (raw sockets, one thread of a process of its own). Prints requests a second, median and p99, and the ratio. meshd is also asked
without batching. A machine that others use gives other figures each time: what counts is the ratio of one run."""
import http.client
import json
import multiprocessing
import os
import pathlib
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from server import Meshd, free_port  # noqa: E402

BINARY, PYTHON = sys.argv[1:3]
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 4
CLIENTS, ROUNDS = 64, 3
DIGITS = ROOT / "tests/conformance/digits"
TEXT = """def predict(b1, b2, w1, w2, x):
  return jnp.argmax(jnp.tanh(x @ w1 + b1) @ w2 + b2, 1).astype(jnp.int32)"""
PEER = """
import pathlib, sys
import fastapi, jax, jax.numpy as jnp, numpy as np, uvicorn
params = {n: np.load(pathlib.Path(sys.argv[2]) / f"{n}.npy") for n in ("b1", "b2", "w1", "w2")}
params = jax.device_put(params)
predict = jax.jit(lambda p, x: jnp.argmax(jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], 1).astype(jnp.int32))
predict(params, np.zeros((1, 64), np.float32)).block_until_ready()
app = fastapi.FastAPI()
@app.post("/predict")
async def run_predict(request: fastapi.Request):
    x = np.frombuffer(await request.body(), np.float32).reshape(-1, 64)
    return fastapi.Response(np.asarray(predict(params, x)).tobytes(), media_type="application/octet-stream")
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


def npy(name):
    """(shape, bytes) of a little-endian file in row-major order."""
    data = (DIGITS / f"{name}.npy").read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + length], {"__builtins__": {}})  # noqa: S307: a file of this repository
    return head["shape"], data[10 + length:]


def post(path, body, head=""):
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n"
            f"{head}\r\n").encode() + body


def load(port, requests, seconds, out):
    """Each of CLIENTS connections sends a request and, once its answer is there, the next; latencies in seconds. Answers of one
    server have bodies of one length."""
    poll, clients, sent, parts, next_one = select.epoll(), {}, {}, {}, {}
    times, wrong, length, count = [], 0, None, len(requests)
    for number in range(CLIENTS):
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(client, select.EPOLLIN)
        clients[client.fileno()], parts[client.fileno()], next_one[client.fileno()] = client, b"", number
    clock, start = time.perf_counter, time.perf_counter()
    for file, client in clients.items():
        sent[file] = clock()
        client.sendall(requests[next_one[file] % count])
    end = start + seconds
    now = start
    while now < end:
        for file, _ in poll.poll(0.5):
            client = clients[file]
            data = parts[file] + client.recv(65536)
            at = data.find(b"\r\n\r\n")
            if at >= 0 and length is None:
                length = int(data[:at].lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if at < 0 or len(data) < at + 4 + length:
                parts[file] = data
                continue
            now = clock()
            times.append(now - sent[file])
            wrong += not data.startswith(b"HTTP/1.1 200")
            parts[file], sent[file] = b"", now
            next_one[file] = (next_one[file] + CLIENTS) % count
            client.send(requests[next_one[file]])
        now = clock()
    out.put((times, wrong, now - start))


def measure(port, requests, seconds=SECONDS):
    out = multiprocessing.Queue()
    process = multiprocessing.Process(target=load, args=(port, requests, seconds, out))
    process.start()
    got = out.get()
    process.join()
    if got[1]:
        raise SystemExit(f"{got[1]} of {len(got[0])} requests failed")
    return got[0], got[2]


def register(server, images):
    arguments = []
    for name in ("b1", "b2", "w1", "w2"):
        shape, data = npy(name)
        status, _, made = server.ask("POST", f"/v1/arrays?dtype=float32&shape={','.join(map(str, shape))}", data,
                                     {"Content-Type": "application/octet-stream"})
        assert status == 201, made
        arguments.append({"array": made["id"]})
    arguments.append({"input": "x", "dtype": "float32", "shape": [-1, 64]})
    for name, most in (("digits", 64), ("single", 1)):
        model = {"program": {"format": "numpy", "text": TEXT}, "arguments": arguments, "outputs": ["class"], "max_batch_size": most}
        status, _, made = server.ask("PUT", f"/v1/models/{name}", model)
        assert status == 201, made
    head = json.dumps({"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": 256}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return {name: [post(f"/v2/models/{name}/infer", head + image, f"Inference-Header-Content-Length: {len(head)}\r\n") for image in images]
            for name in ("digits", "single")}


def check(port, requests, labels):
    """The classes are the peer's: the last four bytes of each answer."""
    client = socket.create_connection(("127.0.0.1", port))
    right = 0
    for request, label in zip(requests, labels):
        client.sendall(request)
        data = client.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += client.recv(65536)
        right += struct.unpack("<i", body[-4:])[0] == label
    return right


def quantile(times, q):
    return sorted(times)[min(len(times) - 1, int(len(times) * q))] * 1e3


def main():
    count = 256
    images = [npy("images")[1][i * 256:(i + 1) * 256] for i in range(count)]
    labels = struct.unpack(f"<{count}i", npy("labels")[1][:4 * count])
    peer_port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script, Meshd(BINARY, "--log-level", "err") as server:
        script.write(PEER)
        script.flush()
        peer = subprocess.Popen([PYTHON, script.name, str(peer_port), str(DIGITS)])
        try:
            ours = register(server, images)
            for _ in range(300):
                try:
                    http.client.HTTPConnection("127.0.0.1", peer_port, timeout=1).connect()
                    break
                except OSError:
                    time.sleep(0.2)
            rows = {"meshd": (server.port, ours["digits"]), "meshd, no batches": (server.port, ours["single"]),
                    "JAX behind FastAPI": (peer_port, [post("/predict", image) for image in images])}
            right = {name: check(port, requests, labels) for name, (port, requests) in rows.items()}
            assert len(set(right.values())) == 1, right
            rates, tails = {name: [] for name in rows}, {name: [] for name in rows}
            medians = {name: [] for name in rows}
            for port, requests in rows.values():
                measure(port, requests, 1)
            for _ in range(ROUNDS):
                for name, (port, requests) in rows.items():
                    times, took = measure(port, requests)
                    rates[name].append(len(times) / took)
                    tails[name].append(quantile(times, 0.99))
                    medians[name].append(quantile(times, 0.5))
            for name in rows:
                print(f"{name:20} {statistics.median(rates[name]):9.0f} requests/s, median {statistics.median(medians[name]):7.2f} ms, "
                      f"p99 {statistics.median(tails[name]):7.2f} ms")
            theirs = statistics.median(rates["JAX behind FastAPI"])
            print(f"{CLIENTS} clients, 1 image each, {os.cpu_count()} cores: {statistics.median(rates['meshd']) / theirs:.2f} times JAX behind FastAPI "
                  f"(without batches {statistics.median(rates['meshd, no batches']) / theirs:.2f})")
            stats = server.ask("GET", "/v2/models/digits/stats")[2]["model_stats"][0]
            print(f"rows of a batch: {stats['inference_count'] / stats['execution_count']:.1f}")
        finally:
            peer.kill()
            peer.wait()


if __name__ == "__main__":
    main()
