"""A server with 1 GiB of memory, in a control group of that size where one can be made: whatever clients send at once, the kernel kills
nothing, what cannot be held is refused with memory_full, and everybody else is served."""
import base64
import contextlib
import gzip
import http.client
import json
import os
import socket
import struct
import sys
import threading
import time

from control_group import GIB, Group
from server import Meshd, memory_of, ok, until

MIB = 1 << 20
SMALL = {"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
                             "  return %0 : tensor<2xf32>\n}"}, "arguments": [[1, 2]]}
# An effect of 16 MiB.
LARGE = """func.func @main(%n: tensor<f32>) -> tensor<f32> {
  %t = stablehlo.create_token : !stablehlo.token
  %x = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<4194000xf32>
  %u = "stablehlo.outfeed"(%x, %t) <{outfeed_config = "q"}> : (tensor<4194000xf32>, !stablehlo.token) -> !stablehlo.token
  return %n : tensor<f32>
}"""


def held_by(server, account):
    """Bytes that an account of the ledger holds."""
    line = f'meshd_memory_held_bytes{{account="{account}"}} '
    return next(int(found[len(line):]) for found in server.ask("GET", "/metrics")[2].decode().splitlines() if found.startswith(line))


def at_once(count, ask):
    """What `count` clients get that call ask(i) together: (status, code) of each, in any order."""
    answers = []

    def one(i):
        status, headers, document = ask(i)
        code = document.get("code") if isinstance(document, dict) else None
        assert status != 503 or headers["Retry-After"], document
        answers.append((status, code))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == count, f"{count - len(answers)} of {count} clients were not answered"
    return answers


def post(server, path, body, headers=None):
    """The answer to a body that the server may refuse before it has all of it."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        client.putrequest("POST", path)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
            client.putheader(name, value)
        client.endheaders()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(body)
        answer = client.getresponse()
        data = answer.read()
        return answer.status, answer.headers, json.loads(data)
    finally:
        client.close()


def refused(answers, *others):
    """All are refused: for want of memory, or as one of `others`."""
    allowed = {(503, "memory_full"), (413, "body_too_large"), *others}
    assert set(answers) <= allowed, f"beside {allowed}: {set(answers) - allowed}"
    assert (503, "memory_full") in answers, answers


def empty_lists_packed(server):
    text = b'{"program": {"text": "x"}, "arguments": [' + b"[]," * 1_800_000 + b"[]]}"
    packed = gzip.compress(b'{"noise": "' + os.urandom(len(text) // 300).hex().encode() + b'", ' + text[1:], 9)
    refused(at_once(40, lambda _: post(server, "/v1/run", packed, {"Content-Encoding": "gzip"})))


def names_of_a_document(server):
    text = b"{" + b",".join(b'"%d":1' % i for i in range(199_000)) + b"}"
    refused(at_once(60, lambda _: post(server, "/v1/meshes", text)), (422, "invalid_mesh"))


def short_lists_of_numbers(server):
    text = b'{"program": {"text": "x"}, "arguments": [' + b",".join([b"[1,1,1,1,1,1,1,1]"] * 1_000_000) + b"]}"
    refused(at_once(24, lambda _: post(server, "/v1/run", text)))


def numbers_of_runs(server):
    """Arguments that take four times their text."""
    count = 4 * MIB
    text = (f"func.func @main(%a: tensor<{count}xf64>) -> tensor<f64> {{\n  %z = stablehlo.constant dense<0.0> : tensor<f64>\n"
            f"  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<{count}xf64>, tensor<f64>) -> tensor<f64>\n"
            "  return %0 : tensor<f64>\n}")
    body = json.dumps({"program": {"text": text}, "arguments": []}).replace("[]", "[[" + "1," * (count - 1) + "1]]").encode()
    answers = at_once(24, lambda _: post(server, "/v1/run", body))
    assert set(answers) <= {(503, "memory_full"), (200, None)}, answers
    assert post(server, "/v1/run", body)[2]["results"][0]["data"] == count


def long_texts(server):
    text = b'{"program": {"text": "' + b"x" * 60_000_000 + b'"}}'
    refused(at_once(24, lambda _: post(server, "/v1/run", text)), (422, "unsupported_op"))


def short_names_in_numpy_syntax(server):
    """Texts whose syntax takes some hundred times their bytes."""

    def text(i):
        return json.dumps({"program": {"format": "numpy", "text": "def f(x):\n return [" + "x.T," * 60_000 + f"] # {i}"}, "arguments": [1.0]}).encode()

    refused(at_once(64, lambda i: post(server, "/v1/run", text(i))), (422, "memory_exceeded"), (422, "invalid_program"), (422, "program_too_large"), (200, None))


def attributes_of_two_characters(server):
    def text(i):
        program = ("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a {x = [" + "1," * 1_000_000
                   + f"{i}]}} : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}}")
        return json.dumps({"program": {"text": program}, "arguments": [[1, 2]]}).encode()

    refused(at_once(8, lambda i: post(server, "/v1/run", text(i))), (422, "memory_exceeded"), (200, None))


def uploads_that_come_slowly(server):
    """Small arrays are in memory while they come, and count: 400 that have all but one of their bytes."""
    size = 1_900_000
    head = f"POST /v1/arrays?dtype=uint8&shape={size} HTTP/1.1\nHost: localhost\nContent-Type: application/octet-stream\nContent-Length: {size}\n\n"
    before, clients, statuses = memory_of(server, "VmRSS"), [], []
    for _ in range(400):
        client = slowly(server, head)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(bytes(size - 1))
        clients.append(client)
    most = memory_of(server, "VmRSS")
    print(f"  uploads that come slowly: {before // MIB} MiB before, {most // MIB} MiB with them")
    assert most - before < 300 * MIB
    assert held_by(server, "requests") > 50 * MIB, "they count"
    for client in clients:
        client.settimeout(0.01)
        with contextlib.suppress(OSError, ValueError):
            statuses.append(status_of(client))
        client.close()
    assert statuses and set(statuses) <= {503, 408}, statuses
    until(lambda: held_by(server, "requests") == 0, "uploads that are cut give their memory back", 60)


def effects_that_nobody_reads(server):
    """Eight streams and eight pages of three effects of 16 MiB whose clients read nothing; then one that reads has all of them."""
    session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
    for i in range(3):
        ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": LARGE}, "arguments": [i + 0.5]}))
    before = memory_of(server, "VmRSS")
    clients = []
    for target in ("events", "effects?limit=3") * 8:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(f"GET /v1/sessions/{session}/{target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        clients.append(client)
    end, most = time.monotonic() + 3, 0
    while time.monotonic() < end:
        most = max(most, memory_of(server, "VmRSS"))
        ok_status = server.ask("GET", "/livez")[0]
        assert ok_status == 200, ok_status
        time.sleep(0.02)
    print(f"  streams and pages that nobody reads: {before // MIB} MiB before, {most // MIB} MiB at most")
    assert most - before < 400 * MIB, f"{before // MIB} MiB before, {most // MIB} MiB with the streams"
    for client in clients:
        client.close()
    assert sequences(server, session) == [1, 2, 3]
    page = ok(server.ask("GET", f"/v1/sessions/{session}/effects"))
    assert [item["sequence"] for item in page["items"]] == [1] and page["next"] == "1", "a page is bounded by bytes"
    page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?after=2&encoding=base64"))
    assert [item["sequence"] for item in page["items"]] == [3]
    # An entry whose text has more than requests may hold is a page of its own.
    ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": LARGE.replace("4194000", "8000000")}, "arguments": [0.5]}))
    page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?after=3&encoding=base64"))
    assert [item["sequence"] for item in page["items"]] == [4]


def large_array_as_text(server):
    """An array whose text would take several times its bytes is there as bytes."""
    count = 16 * MIB
    array = ok(server.ask("POST", f"/v1/arrays?dtype=float32&shape={count}&durability=memory", bytes(4 * count),
                          {"Content-Type": "application/octet-stream"}), 201)["id"]
    target = f"/v1/arrays/{array}/data"
    assert {(answer[0], answer[2]["code"]) for answer in (server.ask("GET", target + f"?format={form}") for form in ("json", "base64"))} == {
        (413, "body_too_large")}
    assert ok(server.ask("GET", target + "?format=json&slice=0:3"))["data"] == [0.0, 0.0, 0.0]
    assert len(server.ask("GET", target)[2]) == 4 * count
    assert server.ask("DELETE", f"/v1/arrays/{array}")[0] == 204


def lists_of_few_bytes(server):
    """Shapes whose lists, or their lines, take many times the bytes of the elements."""

    def made(shape, size):
        return ok(server.ask("POST", f"/v1/arrays?dtype=uint8&shape={shape}&durability=memory", bytes(size),
                             {"Content-Type": "application/octet-stream"}), 201)["id"]

    empty, deep = made("1000000000,0", 0), made("40000" + ",1" * 63, 40000)
    answer = server.ask("GET", f"/v1/arrays/{empty}/data?format=json")
    assert (answer[0], answer[2]["code"]) == (413, "body_too_large"), answer[:1]
    # Not parsed: Python takes seconds for lists of that depth, in which no other thread reads, and the server ends who reads nothing for ten.
    answers = at_once(8, lambda _: server.ask("GET", f"/v1/arrays/{deep}/data?format=json&pretty", most_parsed=MIB))
    assert set(answers) <= {(200, None), (503, "memory_full")} and (200, None) in answers, set(answers)
    for array in (empty, deep):
        assert server.ask("DELETE", f"/v1/arrays/{array}")[0] == 204


def downloads_that_nobody_reads(server):
    """Clients that ask for a large array and read nothing keep others from such downloads, and from nothing else."""
    mesh = ok(server.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": list(range(8))}), 201)["id"]
    count = 8 * MIB
    array = ok(server.ask("POST", f"/v1/arrays?dtype=float32&shape=1024,{count // 1024}&mesh={mesh}&spec=,x", bytes(4 * count),
                          {"Content-Type": "application/octet-stream"}), 201)["id"]
    answer = server.ask("GET", f"/v1/arrays/{array}/data", headers={"Range": "bytes=0-99"})
    assert answer[0] == 206, answer[:1]
    until(lambda: held_by(server, "downloads") == 0, "the memory of an answer is given back once it is sent")
    waiting = []

    def one_more():
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"GET /v1/arrays/{array}/data HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        waiting.append(client)

    def refused_download():
        answer = server.ask("GET", f"/v1/arrays/{array}/data")
        if answer[0] != 200:
            return answer
        # It may have had the memory of a client above, which was refused then and does not ask again.
        one_more()
        return None

    try:
        for _ in range(60):
            one_more()
        refusal = until(refused_download, "downloads are full")
        assert (refusal[0], refusal[2]["code"]) == (503, "memory_full") and refusal[1]["Retry-After"], refusal
        for path in ("/v1/arrays?limit=1000", f"/v1/arrays/{array}", "/v1/ops", "/openapi.json", "/metrics"):
            ok(server.ask("GET", path))
        large = ok(server.ask("POST", "/v1/run", {**SMALL, "arguments": [[3, 4]]}))
        assert large["results"][0]["data"] == [6.0, 8.0]
    finally:
        for client in waiting:
            client.close()
    until(lambda: held_by(server, "downloads") == 0, "their memory is free again")
    assert len(server.ask("GET", f"/v1/arrays/{array}/data")[2]) == 4 * count
    assert server.ask("DELETE", f"/v1/arrays/{array}")[0] == 204


def slowly(server, head, body=b""):
    """A client that has sent this and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    client.sendall(head.replace("\n", "\r\n").encode() + body)
    return client


def status_of(client):
    return int(client.recv(12, socket.MSG_WAITALL)[-3:])


def large_program(server):
    """A program of 30 MB that forty-eight clients read, explain and run at once: few find the memory, alone each does, and a small one is read as ever."""
    text = SMALL["program"]["text"] + "\n// " + "x" * 30_000_000
    large = ok(server.ask("POST", "/v1/programs", text.encode(), {"Content-Type": "text/plain"}), 201)["id"]
    small = ok(server.ask("POST", "/v1/programs", SMALL["program"]), 201)["id"]
    for ask in (lambda program: server.ask("GET", f"/v1/programs/{program}"), lambda program: server.ask("POST", f"/v1/programs/{program}:explain", {}),
                lambda program: server.ask("POST", "/v1/run", {"program": {"id": program}, "arguments": [[1, 2]]})):
        answers = at_once(48, lambda _, ask=ask: ask(large))
        assert set(answers) <= {(200, None), (503, "memory_full")}, set(answers)
        assert ask(large)[0] == ask(small)[0] == 200
    for program in (large, small):
        ok(server.ask("DELETE", f"/v1/programs/{program}"), 204)


def programs_that_take_much_to_compile(server):
    """Programs of 40,000 ops that forty-eight clients run at once, each another one, and one of 600,000 ops."""
    def adding(count, last):
        lines = "".join(f"  %{i} = stablehlo.add {f'%{i - 1}' if i else '%a'}, %a : tensor<2xf32>\n" for i in range(count))
        return f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{lines}  return %{last} : tensor<2xf32>\n}}"

    answers = at_once(48, lambda i: server.ask("POST", "/v1/run", {"program": {"text": adding(40_000, 39_999 - i)}, "arguments": [[1, 2]]}))
    assert set(answers) <= {(200, None), (503, "memory_full")} and (200, None) in answers, set(answers)
    ok(server.ask("POST", "/v1/run", {"program": {"text": adding(40_000, 39_000)}, "arguments": [[1, 2]]}))
    answer = server.ask("POST", "/v1/programs", adding(600_000, 599_999).encode(), {"Content-Type": "text/plain"})
    assert (answer[0], answer[2]["code"]) == (422, "memory_exceeded"), answer


def callback_of_large_values(server):
    """A callback request of 16 MiB that forty-eight clients read at once."""
    text = """func.func @main(%n: tensor<f32>) -> tensor<f32> {
  %x = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<4194000xf32>
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}}
    : (tensor<4194000xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
    job = {"program": {"text": text}, "arguments": [0.1], "callbacks": {"0": {"effect": "callback", "name": "ask", "live": True}}}
    ok(server.ask("POST", f"/v1/sessions/{session}/jobs", job, {"Prefer": "respond-async"}), 202)
    at = f"/v1/sessions/{session}/callbacks/1"
    until(lambda: server.ask("GET", f"{at}?encoding=base64")[0] == 200, "the callback request is there")
    answers = at_once(48, lambda _: server.ask("GET", at))
    assert set(answers) <= {(200, None), (503, "memory_full")}, set(answers)
    assert server.ask("GET", at)[0] == 200
    until(lambda: server.ask("POST", at, {"values": [1]})[0] == 200, "a reply")
    ok(server.ask("DELETE", f"/v1/sessions/{session}"), 204)


def arrays_that_left_memory(server):
    """One and a quarter gigabytes of arrays in memory that are deleted while clients read them, who read nothing."""
    data, waiting, statuses = bytes(32 * MIB), [], []
    try:
        for _ in range(40):
            made = server.ask("POST", f"/v1/arrays?dtype=uint8&shape={len(data)}&durability=memory", data, {"Content-Type": "application/octet-stream"})
            path = f"/v1/arrays/{ok(made, 201)['id']}"
            waiting.append(slowly(server, f"GET {path}/data HTTP/1.1\nHost: 127.0.0.1\n\n"))
            statuses.append(status_of(waiting[-1]))
            ok(server.ask("DELETE", path), 204)
        assert set(statuses) == {200, 503}, statuses
    finally:
        for client in waiting:
            client.close()


def chunks_that_nobody_reads(server):
    """A chunk of 32 MiB of an array that is not committed, for forty clients that read nothing."""
    data, waiting, statuses = bytes(32 * MIB), [], []
    document = {"zarr_format": 3, "node_type": "array", "shape": [len(data)], "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(data)]}}, "chunk_key_encoding": {"name": "default"}}
    node = "/v1/zarr/v3-pending/slow"
    ok(server.ask("PUT", f"{node}/zarr.json", document), 201)
    ok(server.ask("PUT", f"{node}/c/0", data, {"Content-Type": "application/octet-stream"}), 204)
    try:
        for _ in range(40):
            waiting.append(slowly(server, f"GET {node}/c/0 HTTP/1.1\nHost: 127.0.0.1\n\n"))
            statuses.append(status_of(waiting[-1]))
        assert set(statuses) == {200, 503}, statuses
    finally:
        for client in waiting:
            client.close()
    until(lambda: server.ask("GET", f"{node}/c/0")[2] == data, "the memory is free again")
    ok(server.ask("DELETE", f"{node}/zarr.json"), 204)


def windows_of_uploads(server):
    """Uploads of zstd data, each of which wants a window of 8 MiB and does not end."""
    block = os.urandom(1 << 17)
    frame = b"\x28\xb5\x2f\xfd\x00\x68" + ((len(block) << 3).to_bytes(3, "little") + block) * 64
    head = ("POST /v1/arrays?dtype=uint8&shape=100000000 HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/octet-stream\n"
            f"Content-Encoding: zstd\nContent-Length: {len(frame) + 100}\n\n")
    waiting = []
    try:
        for _ in range(120):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                waiting.append(slowly(server, head, frame))
        until(lambda: held_by(server, "requests") > 64 * MIB, "windows are counted")
    finally:
        for client in waiting:
            client.close()
    until(lambda: held_by(server, "requests") == 0, "the memory is free again")


def ended(server, job):
    """The document of a job that is over. Its results are a long text: while other jobs' texts hold the memory it is refused."""
    def found():
        answer = server.ask("GET", f"/v1/jobs/{job}")
        if answer[0] == 503 and answer[2]["code"] == "memory_full":
            return None
        return answer[2] if ok(answer)["state"] in ("done", "failed", "cancelled") else None
    return until(found, f"{job} is over", 120)


def results_as_text(server):
    """Runs whose results would be texts of a third of a gigabyte: all at once they find no room, stored they are done."""
    text = "func.func @main() -> tensor<4000000xf64> {\n  %0 = stablehlo.iota dim = 0 : tensor<4000000xf64>\n  return %0 : tensor<4000000xf64>\n}"
    answers = at_once(24, lambda _: server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": []}))
    assert set(answers) <= {(200, None), (503, "memory_full"), (422, "memory_exceeded")}, set(answers)
    smaller = text.replace("4000000", "1000000")
    answers = at_once(24, lambda _: server.ask("POST", "/v1/run", {"program": {"text": smaller}, "arguments": []}))
    assert set(answers) <= {(200, None), (503, "memory_full")} and (200, None) in answers, set(answers)
    session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
    jobs = [ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": smaller}, "arguments": []}, {"Prefer": "respond-async"}), 202)["id"]
            for _ in range(8)]
    states = {ended(server, job)["state"] for job in jobs}
    assert states == {"done"}, f"a job waits for the memory of its answer: {states}"
    stored = ok(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [], "results": {"encoding": "array", "durability": "memory"}}))
    assert server.ask("DELETE", f"/v1/arrays/{stored['results'][0]['array']}")[0] == 204
    ok(server.ask("DELETE", f"/v1/sessions/{session}"), 204)


def results_that_nobody_reads(server):
    """Files of results and outputs of models, three quarters of a gigabyte of each, for clients that do not read them: what there is no memory for is refused."""
    zeros = "def f(x):\n  return jnp.zeros((x.shape[0], 8000000), jnp.float32) + x.sum()"
    model = {"program": {"format": "numpy", "text": zeros}, "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 1]}], "max_batch_size": 1}
    ok(server.ask("PUT", "/v1/models/zeros", model), 201)
    for path, accept, document in (
            ("/v1/run", "application/x-npy", {"program": {"format": "numpy", "text": zeros}, "arguments": [[[1.0]]]}),
            ("/v2/models/zeros/infer", "*/*", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}], "parameters": {"binary_data_output": True}})):
        body = json.dumps(document).encode()
        waiting, statuses = [], []
        try:
            for _ in range(24):
                client = socket.socket()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.settimeout(120)
                client.connect(("127.0.0.1", server.port))
                waiting.append(client)
                client.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                statuses.append(client.recv(12, socket.MSG_WAITALL)[-3:])
            assert set(statuses) == {b"200", b"503"}, (path, statuses)
            ok(server.ask("GET", "/v1/arrays?limit=1000"))
            assert ok(server.ask("POST", "/v1/run", SMALL))["results"][0]["data"] == [2.0, 4.0]
        finally:
            for client in waiting:
                client.close()
        until(lambda: server.ask("POST", path, document, {"Accept": accept})[0] == 200, "their memory is free again")
    ok(server.ask("DELETE", "/v1/models/zeros"), 204)


def large_results_at_once(server):
    """Results of 160 MiB, stored by eight clients at once and written much slower than they are made; then a file that nobody reads beside a job
    that needs almost all there is: results are in the memory of jobs until they are written or sent."""
    def document(mib):
        return {"program": {"format": "numpy", "text": f"def f(x):\n  return jnp.zeros(({mib}, 1 << 18), jnp.float32) + x"}, "arguments": [1.5]}

    def store(_):
        answer = server.ask("POST", "/v1/run", {**document(160), "results": {"encoding": "array"}})
        ok(server.ask("DELETE", "/v1/arrays/" + answer[2]["results"][0]["array"]), 204)
        return answer

    assert set(at_once(8, store)) == {(200, None)}
    body = json.dumps(document(560)).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(120)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/x-npy\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert client.recv(12, socket.MSG_WAITALL)[-3:] == b"200"
        assert ok(server.ask("POST", "/v1/run", {**document(100), "results": {"encoding": "none"}}))
        large = {**document(600), "results": {"encoding": "none"}}
        assert ok(server.ask("POST", "/v1/run", {**large, "deadline": 0.5}), 422)["code"] == "deadline_exceeded"
    until(lambda: server.ask("POST", "/v1/run", large)[0] == 200, "its memory is free again")


def values_of_models(server):
    """Models of four megabytes of values each, until there is no room for more."""
    values = base64.b64encode(bytes(2_800_000)).decode()
    arguments = [{"input": "x", "dtype": "float32", "shape": [-1, 1]}, {"dtype": "float32", "shape": [700_000], "base64": values}]
    model = {"program": {"format": "numpy", "text": "def f(x, w): return x * w[0]"}, "arguments": arguments, "max_batch_size": 1, "warm_up": False}
    for count in range(64):
        status, _, document = server.ask("PUT", f"/v1/models/large{count}", model)
        if status != 201:
            break
    assert (status, document.get("code")) == (429, "limit_reached") and count > 4, (status, document, count)
    for i in range(count):
        ok(server.ask("DELETE", f"/v1/models/large{i}"), 204)
    ok(server.ask("PUT", "/v1/models/large", model), 201)
    ok(server.ask("DELETE", "/v1/models/large"), 204)


def effects_of_one_run(server):
    """A run that logs two gigabytes: refused where its effects are kept until its end, done where they are streamed."""
    count = 1 << 19
    text = f"""func.func @main(%t: !stablehlo.token {{jax.token = true}}, %n: tensor<i32>) -> (!stablehlo.token {{jax.token = true}}, tensor<i32>) {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %u = %t) : tensor<i32>, !stablehlo.token cond {{
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %v = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<{count}xi32>
    %w = stablehlo.custom_call @xla_ffi_python_cpu_callback(%u, %v) {{backend_config = "", has_side_effect = true, mhlo.backend_config = {{index = 0 : ui64}}, operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<> : tensor<0xindex>]}} : (!stablehlo.token, tensor<{count}xi32>) -> !stablehlo.token
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w : tensor<i32>, !stablehlo.token
  }}
  return %0#1, %0#0 : !stablehlo.token, tensor<i32>
}}"""
    job = {"program": {"text": text}, "arguments": [1000], "callbacks": {"0": {"effect": "log", "name": "n"}}}
    status, _, document = server.ask("POST", "/v1/run", job)
    assert (status, document.get("code")) == (422, "memory_exceeded"), (status, document)
    session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
    status, _, document = server.ask("POST", f"/v1/sessions/{session}/jobs", job)
    assert (status, document.get("code")) == (422, "memory_exceeded"), (status, document)
    assert "streaming" in document["detail"], document
    assert ok(server.ask("GET", f"/v1/sessions/{session}/effects"))["items"] == []
    done = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {**job, "arguments": [100], "effects": "streaming"}))
    assert done["effects"]["count"] == 100 if isinstance(done["effects"], dict) else True, done
    ok(server.ask("DELETE", f"/v1/sessions/{session}"), 204)


def jobs_that_wait(server):
    """Jobs with 20 MiB of arguments each wait behind one that waits for its client, and all are done in the end."""
    count = 5 * MIB
    wait = """func.func @main(%t: !stablehlo.token {jax.token = true}) -> (!stablehlo.token {jax.token = true}, tensor<f32>) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "go"}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
  return %0#1, %0#0 : !stablehlo.token, tensor<f32>
}"""
    total = f"""func.func @main(%a: tensor<{count}xf32>) -> tensor<f32> {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<{count}xf32>, tensor<f32>) -> tensor<f32>
  %t = stablehlo.create_token : !stablehlo.token
  %u = "stablehlo.outfeed"(%0, %t) <{{outfeed_config = "q"}}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
  return %0 : tensor<f32>
}}"""
    large = f"""func.func @main(%n: tensor<f32>) -> tensor<{count}xf32> {{
  %0 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<{count}xf32>
  %t = stablehlo.create_token : !stablehlo.token
  %u = "stablehlo.outfeed"(%n, %t) <{{outfeed_config = "q"}}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
  return %0 : tensor<{count}xf32>
}}"""
    session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
    path = f"/v1/sessions/{session}/jobs"

    def form(i):
        data = json.dumps({"program": {"text": total}, "arguments": [{"part": "x", "dtype": "float32", "shape": [count]}]}).encode()
        body = (b"--B\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n" + data +
                b"\r\n--B\r\nContent-Disposition: form-data; name=\"x\"; filename=\"x\"\r\nContent-Type: application/octet-stream\r\n\r\n" +
                struct.pack("<f", i) + bytes(4 * count - 4) + b"\r\n--B--\r\n")
        return server.ask("POST", path, body, {"Content-Type": "multipart/form-data; boundary=B", "Prefer": "respond-async"})

    first = ok(server.ask("POST", path, {"program": {"text": wait}, "arguments": []}, {"Prefer": "respond-async"}), 202)["id"]
    until(lambda: ok(server.ask("GET", f"/v1/jobs/{first}"))["state"] == "running", "the first one runs")
    with_arguments = [ok(form(i), 202)["id"] for i in range(40)]
    with_results = [ok(server.ask("POST", path, {"program": {"text": large}, "arguments": [i + 0.5], "results": {"encoding": "array", "durability": "memory"}},
                                  {"Prefer": "respond-async"}), 202)["id"] for i in range(20)]
    print(f"  60 jobs wait: {memory_of(server, 'VmRSS') // MIB} MiB, {held_by(server, 'waiting') // MIB} MiB of them counted")
    ok(server.ask("POST", f"/v1/sessions/{session}/infeed", {"queue": "go", "values": [{"dtype": "float32", "shape": [], "data": 1}]}), 201)
    for i, job in enumerate(with_arguments):
        done = ended(server, job)
        assert done["state"] == "done" and done["answer"]["results"][0]["data"] == float(i), done
    for job in with_results:
        assert ended(server, job)["state"] == "done"
    assert held_by(server, "waiting") == 0
    ok(server.ask("DELETE", f"/v1/sessions/{session}"), 204)


def many_programs(server):
    """Two hundred programs of half a megabyte: those that were used last are kept."""
    before = memory_of(server, "VmRSS")
    for i in range(200):
        values = ",".join([f"{i}.0"] + ["0.5"] * 99_999)
        text = (f"func.func @main() -> tensor<100000xf32> {{ %0 = stablehlo.constant dense<[{values}]> : tensor<100000xf32>\n"
                " return %0 : tensor<100000xf32> }")
        ok(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [], "results": {"encoding": "none"}}))
    assert memory_of(server, "VmRSS") - before < 100 * MIB


def sequences(server, session):
    """The numbers of three effects of a session's stream, which is resumed when it is cut."""
    seen, deadline = [], time.monotonic() + 60
    while len(seen) < 3:
        assert time.monotonic() < deadline, f"after 60 s only {seen}"
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        client.request("GET", f"/v1/sessions/{session}/events", headers={"Last-Event-ID": str(seen[-1])} if seen else {})
        answer = client.getresponse()
        number = None
        with contextlib.suppress(http.client.IncompleteRead):
            while len(seen) < 3:
                line = answer.readline()
                if not line:
                    break  # cut: resumed below
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line == b"\n" and number is not None:
                    seen.append(number)
                    number = None
        client.close()
        time.sleep(0.2)
    return seen


def job_beside_many_arrays(limit):
    """A server of `limit` bytes stores four times as much, and a job runs that plans 700/1024 of it, of arrays that it loads."""
    group = Group(limit)
    try:
        with Meshd(sys.argv[1], "--devices", "8", *group.options(), launcher=group.launcher()) as server:
            part = limit // 1024 * 175  # bytes of each of two arguments; the result has both
            count = part // 4
            block = os.urandom(MIB)
            arrays = []
            for i in range(4 * limit // part + 1):
                client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
                client.request("POST", f"/v1/arrays?dtype=uint32&shape={count}", ((block[i:] + block[:i])[:part - at] for at in range(0, part, MIB)),
                               {"Content-Type": "application/octet-stream", "Content-Length": str(part)})
                answer = client.getresponse()
                document = json.loads(answer.read())
                assert answer.status == 201, document
                arrays.append(document["id"])
                client.close()
                if i % 4 == 3:  # some have been in memory
                    ok(server.ask("POST", "/v1/run", {"program": {"text": total(count)}, "arguments": [{"array": arrays[-1]}]}))
            text = (f"func.func @main(%a: tensor<{count}xui32>, %b: tensor<{count}xui32>) -> tensor<{2 * count}xui32> {{\n"
                    f"  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<{count}xui32>, tensor<{count}xui32>) -> tensor<{2 * count}xui32>\n"
                    f"  return %0 : tensor<{2 * count}xui32>\n}}")
            done = ok(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [{"array": arrays[0]}, {"array": arrays[1]}],
                                                     "results": {"encoding": "array"}}))
            planned = done["statistics"]["planned_peak_bytes"]
            print(f"{len(arrays) * part // MIB} MiB stored in {limit // MIB} MiB; a job of {planned // MIB} MiB; "
                  f"{memory_of(server, 'VmHWM') // MIB} MiB resident at most")
            assert planned >= 4 * part, planned
            result = done["results"][0]["array"]
            both = server.ask("GET", f"/v1/arrays/{result}/data?slice={count - 2}:{count + 2}")[2]
            one, two = (server.ask("GET", f"/v1/arrays/{arrays[i]}/data")[2] for i in (0, 1))
            assert both == one[-8:] + two[:8], both
            assert server.process.poll() is None and group.kills() == 0, "the kernel has killed the server"
    finally:
        group.remove()


def total(count):
    """The sum of an argument."""
    return (f"func.func @main(%a: tensor<{count}xui32>) -> tensor<ui32> {{\n  %z = stablehlo.constant dense<0> : tensor<ui32>\n"
            f"  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<{count}xui32>, tensor<ui32>) -> tensor<ui32>\n"
            "  return %0 : tensor<ui32>\n}")


def main():
    job_beside_many_arrays(GIB if os.environ.get("LONG") else GIB // 4)
    group = Group()
    try:
        server = Meshd(sys.argv[1], "--devices", "8", *group.options(), launcher=group.launcher())
        with server:
            for attack in (empty_lists_packed, names_of_a_document, short_lists_of_numbers, numbers_of_runs, long_texts, short_names_in_numpy_syntax, attributes_of_two_characters, uploads_that_come_slowly,
                           large_array_as_text, lists_of_few_bytes, many_programs,
                           downloads_that_nobody_reads, large_program, programs_that_take_much_to_compile, callback_of_large_values, arrays_that_left_memory, chunks_that_nobody_reads, windows_of_uploads, results_as_text, results_that_nobody_reads, large_results_at_once, values_of_models,
                           effects_of_one_run, jobs_that_wait,
                           effects_that_nobody_reads):
                begin = time.monotonic()
                attack(server)
                assert server.process.poll() is None and group.kills() == 0, f"{attack.__name__}: the kernel has killed the server"
                assert ok(server.ask("POST", "/v1/run", SMALL))["results"][0]["data"] == [2.0, 4.0]
                print(f"{attack.__name__}: {time.monotonic() - begin:.1f} s, {memory_of(server, 'VmRSS') // MIB} MiB now, "
                      f"{memory_of(server, 'VmHWM') // MIB} MiB at most")
            held = [line for line in server.ask("GET", "/metrics")[2].decode().splitlines() if line.startswith("meshd_memory_held_bytes{")]
            assert {line.split()[1] for line in held if "requests" in line or "events" in line} == {"0"}, held
    finally:
        group.remove()
    return 0


sys.exit(main())
