"""Models over the Open Inference Protocol, as clients without a library see them: models_test.py BINARY.

A server is restarted and killed between requests, many clients ask at once, and bodies come in every form that Triton's clients send."""
import concurrent.futures
import gzip
import http.client
import json
import math
import signal
import struct
import sys
import threading
import time
import zlib

from server import Meshd, ok, refused, until
from shared_server import BINARY, Shared, run

X = {"input": "x", "dtype": "float32", "shape": [-1, 4]}
SOFTMAX = {"program": {"format": "numpy", "text": "def f(x, w):\n  y = jnp.tanh(x @ w)\n  return y, jnp.argmax(y, axis=1)"},
           "outputs": ["scores", "class"], "max_batch_size": 16}
WEIGHTS = [[0.5, -1, 0.25], [1, 0.5, -0.5], [-0.25, 0.125, 1], [0.75, 0.5, 0.5]]
SLOW = """def f(x):
  def step(state):
    return state[0] + 1, jnp.tanh(state[1] * 1.0001)
  return lax.while_loop(lambda s: s[0] < 20000, step, (0, x))[1]"""


def digits(server, **more):
    """A model that binds a stored array."""
    array = ok(server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [4, 3], "data": WEIGHTS}), 201)["id"]
    return array, {**SOFTMAX, "arguments": [X, {"array": array}], **more}


def expected(row):
    scores = [math.tanh(sum(a * WEIGHTS[i][j] for i, a in enumerate(row))) for j in range(3)]
    return scores, scores.index(max(scores))


def binary_body(rows, **more):
    """As tritonclient sends it: (body, bytes of the JSON)."""
    data = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    head = json.dumps({"inputs": [{"name": "x", "shape": [len(rows), len(rows[0])], "datatype": "FP32",
                                   "parameters": {"binary_data_size": len(data)}}], "parameters": {"binary_data_output": True}, **more}).encode()
    return head + data, len(head)


class Client:
    """One kept connection."""

    def __init__(self, server, token=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def infer(self, model, rows, coding=None, answer=None, **more):
        """Values of each output, or (status, problem)."""
        body, head = binary_body(rows, **more)
        headers = {**self.headers, "Inference-Header-Content-Length": str(head)}
        if coding:
            body = (gzip if coding == "gzip" else zlib).compress(body)
            headers["Content-Encoding"] = coding
        if answer:
            headers["Accept-Encoding"] = answer
        self.connection.request("POST", f"/v2/models/{model}/infer", body, headers)
        got = self.connection.getresponse()
        data = got.read()
        if got.status != 200:
            return got.status, json.loads(data)
        if got.getheader("Content-Encoding"):
            data = (gzip if got.getheader("Content-Encoding") == "gzip" else zlib).decompress(data)
        length = int(got.getheader("Inference-Header-Content-Length"))
        document, at, out = json.loads(data[:length]), length, {}
        for each in document["outputs"]:
            size = each["parameters"]["binary_data_size"]
            assert size == 4 * math.prod(each["shape"]), each
            out[each["name"]] = struct.unpack("<%d%s" % (size // 4, "f" if each["datatype"] == "FP32" else "i"), data[at:at + size])
            at += size
        assert at == len(data), (at, len(data))
        return out


def check(got, rows):
    assert isinstance(got, dict), got
    scores, classes = zip(*map(expected, rows))
    assert all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(got["scores"], sum(scores, []))), (got, scores)
    assert got["class"] == classes, (got, classes)


def test_a_model_survives_restarts_and_kills():
    with Meshd(BINARY) as server:
        array, document = digits(server, labels={"stage": "canary"})
        made = ok(server.ask("PUT", "/v1/models/m", document), 201)
        ok(server.ask("PUT", "/v1/models/m", {**document, "max_batch_size": 8}), 201)
        ok(server.ask("PUT", "/v1/models/off", document), 201)
        ok(server.ask("POST", "/v2/repository/models/off/unload"))
        ok(server.ask("DELETE", f"/v1/programs/{made['program']}"), 204)  # the model keeps what it needs
        row = [[1, 2, 3, 4]]
        before = Client(server).infer("m/versions/1", row)
        check(before, row)
        for how in (signal.SIGTERM, signal.SIGKILL):
            server.stop(how)
            server.start()
            until(lambda: server.ask("GET", "/v2/health/ready")[0] == 200, "models are ready")
            again = ok(server.ask("GET", "/v1/models/m?version=1"))
            assert again == {**made, "versions": [1, 2]}, (again, made)
            assert Client(server).infer("m/versions/1", row) == before
            refused(server.ask("DELETE", f"/v1/arrays/{array}"), 409, "array_in_use")
            index = {(each["name"], each["version"]): each["state"] for each in ok(server.ask("POST", "/v2/repository/index"))}
            assert index == {("m", "1"): "READY", ("m", "2"): "READY", ("off", "1"): "UNAVAILABLE"}, index
        ok(server.ask("DELETE", "/v1/models/m"), 204)
        ok(server.ask("DELETE", "/v1/models/off"), 204)
        ok(server.ask("DELETE", f"/v1/arrays/{array}"), 204)
        server.stop()
        server.start()
        assert ok(server.ask("GET", "/v1/models"))["items"] == []


def test_bodies_in_every_coding():
    with Meshd(BINARY) as server:
        ok(server.ask("PUT", "/v1/models/m", digits(server)[1]), 201)
        wide = {"program": {"format": "numpy", "text": "def f(x): return x + 1"}, "max_batch_size": 2,
                "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 4096]}]}
        ok(server.ask("PUT", "/v1/models/wide", wide), 201)
        client = Client(server)
        rows = [[0.5 * i, 1, -i, 2] for i in range(16)]
        for coding in (None, "gzip", "deflate"):
            for answer in (None, "gzip", "deflate", "gzip, deflate, br, zstd"):
                check(client.infer("m", rows, coding, answer), rows)
                assert client.infer("wide", [[0.0] * 4096], coding, answer)["output_0"] == (1.0,) * 4096
        body, head = binary_body(rows)
        for name, sent, status in (("cut off", zlib.compress(body)[:-4], 400), ("more behind it", zlib.compress(body) + b"x", 400),
                                   ("gzip", gzip.compress(body), 400)):
            headers = {"Content-Encoding": "deflate", "Inference-Header-Content-Length": str(head)}
            answer = server.ask("POST", "/v2/models/m/infer", sent, headers)
            assert answer[0] == status, (name, answer)


def test_clients_at_once_get_their_own_rows():
    with Meshd(BINARY) as server:
        ok(server.ask("PUT", "/v1/models/m", digits(server, batching={"max_queue_delay_microseconds": 1000})[1]), 201)

        def session(number):
            client = Client(server)
            for i in range(40):
                rows = [[number * 0.01, i * 0.02, k, 1] for k in range(1 + (number + i) % 4)]
                check(client.infer("m", rows), rows)
            return sum(1 + (number + i) % 4 for i in range(40))

        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            rows = sum(pool.map(session, range(24)))
        stats = ok(server.ask("GET", "/v2/models/m/stats"))["model_stats"][0]
        assert stats["inference_count"] == rows and stats["inference_stats"]["success"]["count"] == 24 * 40, stats
        assert stats["execution_count"] < 24 * 40, "no requests ran together"
        assert sum(each["batch_size"] * each["compute_infer"]["count"] for each in stats["batch_stats"]) == rows


def test_one_principals_flood_does_not_keep_others_out():
    with Shared("ann ann\nbob bob\nown own\n") as shared:
        document = {"program": {"format": "numpy", "text": SLOW}, "arguments": [X], "max_batch_size": 4, "shared": True,
                    "batching": {"max_queue_size": 16, "timeout_microseconds": 60_000_000}}
        ok(shared.ask("own", "PUT", "/v1/models/slow", document), 201)
        over, statuses = threading.Event(), []

        def flood():
            client = Client(shared.server, "ann")
            while not over.is_set():
                got = client.infer("slow", [[1, 2, 3, 4]])
                statuses.append(200 if isinstance(got, dict) else got[0])

        floods = [threading.Thread(target=flood) for _ in range(32)]
        for each in floods:
            each.start()
        client = Client(shared.server, "bob")
        for _ in range(5):
            assert isinstance(client.infer("slow", [[1, 2, 3, 4]]), dict)
        until(lambda: 429 in statuses, "the flood is refused beyond its part of the queue")
        over.set()
        for each in floods:
            each.join()
        assert set(statuses) <= {200, 429}, set(statuses)
        refused(shared.ask("bob", "DELETE", "/v1/models/slow"), 403, "forbidden")


def test_a_stop_ends_requests_that_wait():
    with Meshd(BINARY) as server:
        document = {"program": {"format": "numpy", "text": "def f(x): return x"}, "arguments": [X], "max_batch_size": 4,
                    "batching": {"max_queue_delay_microseconds": 10_000_000}}
        ok(server.ask("PUT", "/v1/models/m", document), 201)
        got = []
        waits = threading.Thread(target=lambda: got.append(Client(server).infer("m", [[1, 2, 3, 4]])))
        waits.start()
        time.sleep(0.3)
        assert server.stop(signal.SIGTERM) == 0
        waits.join()
        assert isinstance(got[0], dict) or got[0][0] == 503, got


def test_a_batch_ends_when_its_clients_have_left():
    with Meshd(BINARY) as server:
        loop = "def f(x):\n  return lax.while_loop(lambda s: jnp.sum(s) > 0, lambda s: s * 1.0, x)"
        document = {"program": {"format": "numpy", "text": loop}, "arguments": [X], "max_batch_size": 4,
                    "batching": {"max_queue_delay_microseconds": 100_000, "timeout_microseconds": 30_000_000}}
        ok(server.ask("PUT", "/v1/models/m", document), 201)

        def leave():
            body, head = binary_body([[1, 1, 1, 1]])
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", "/v2/models/m/infer", body, {"Inference-Header-Content-Length": str(head)})
            return connection

        begun = [leave() for _ in range(3)]  # one batch, which never ends
        until(lambda: b"\nmeshd_jobs_running 1\n" in server.ask("GET", "/metrics")[2], "the batch runs")
        for each in begun:
            each.close()
        got = Client(server).infer("m", [[0, 0, 0, 0]])
        assert isinstance(got, dict), got
        until(lambda: b"\nmeshd_jobs_running 0\n" in server.ask("GET", "/metrics")[2], "nothing runs")


def test_sharded_parameters():
    with Meshd(BINARY, "--devices", "4") as server:
        mesh = ok(server.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1, 2, 3]}), 201)["id"]
        array = ok(server.ask("POST", f"/v1/arrays?mesh={mesh}&spec=x,", {"dtype": "float32", "shape": [4, 3], "data": WEIGHTS}), 201)["id"]
        ok(server.ask("PUT", "/v1/models/m", {**SOFTMAX, "arguments": [X, {"array": array}]}), 201)
        for count in (1, 3, 16):
            rows = [[0.1 * i, 1, -0.2, 0.3 * i] for i in range(count)]
            check(Client(server).infer("m", rows), rows)


sys.exit(run(dict(globals())))
