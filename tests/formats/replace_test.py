#!/usr/bin/env python3
"""New data for arrays that are there: versions and conditions, slices, what stands against it, readers and writers at once, kills."""
import pathlib
import random
import signal
import socket

import sys
import threading
import time

import numpy as np

from file_formats import RAW, Meshd, awkward_bytes, mesh_of, ok, refused, run_tests, spec_of, write_npy
from server import until

NPY = {"Content-Type": "application/x-npy"}
# Counts to n beside its argument, then gives x + n: how long it takes is said by n.
COUNT = """func.func @main(%x: tensor<4xi32>, %n: tensor<i32>) -> tensor<4xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %m = stablehlo.while(%i = %zero) : tensor<i32> cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %y = stablehlo.add %x, %b : tensor<4xi32>
  return %y : tensor<4xi32>
}"""
DOUBLE = "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> { %y = stablehlo.add %x, %x : tensor<4xi32> return %y : tensor<4xi32> }"


def new(s, array, query=""):
    array = np.asarray(array)
    status, headers, made = s.ask("POST", f"/v1/arrays?name=a{query}", write_npy(array), NPY)
    assert status == 201, made
    return f"/v1/arrays/{made['id']}", headers["ETag"]


def get(s, at, dtype=np.int32):
    status, headers, body = s.ask("GET", at + "/data")
    assert status == 200, body
    return np.frombuffer(body, dtype).reshape([int(n) for n in headers["Array-Shape"].split(",")]), headers["ETag"]


def put(s, at, array, query="", **headers):
    return s.ask("PUT", f"{at}/data{query}", np.asarray(array).tobytes(), {**RAW, **headers})


def cut(s, *spec):
    return f"&mesh={mesh_of(s, ['x', 'y'], [[0, 1], [2, 3], [4, 5]])}&spec={','.join(spec)}"


def test_a_new_version_in_every_form(s):
    for durability in ("durable", "memory"):
        first, second = np.arange(10, dtype=np.int32).reshape(5, 2), np.arange(100, 110, dtype=np.int32).reshape(5, 2)
        at, etag = new(s, first, cut(s, "x", "y") + "&durability=" + durability)
        value = {"dtype": "int32", "shape": [5, 2], "data": second.tolist()}
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + second.tobytes() + b"\r\n--b--\r\n"
        for version, (body, headers) in enumerate(((second.tobytes(), RAW), (write_npy(second), NPY), (value, None), (second.tolist(), None),
                                                   (second.tobytes(), None), (write_npy(second), {"Content-Type": "application/x-www-form-urlencoded"}),
                                                   (form, {"Content-Type": "multipart/form-data; boundary=b"})), 1):
            status, shown, document = s.ask("PUT", at + "/data", body, headers)
            assert (status, document.get("version"), document.get("state")) == (200, 2 * version, "ready"), (status, document)
            assert shown["ETag"] not in (etag, None) and get(s, at)[1] == shown["ETag"]
            etag = shown["ETag"]
            assert np.array_equal(get(s, at)[0], second)
            assert s.ask("GET", at + "/shards/4")[2] == second[4:, :1].tobytes()
            assert s.ask("GET", at + "/data", headers={"If-None-Match": etag})[0] == 304
            ok(put(s, at, first))
            assert np.array_equal(get(s, at)[0], first)
            assert s.ask("GET", at + "/data", headers={"If-None-Match": etag})[0] == 200


def test_conditions(s):
    at, etag = new(s, np.arange(4, dtype=np.int32))
    mine = np.arange(4, 8, dtype=np.int32)
    for header in ({"If-Match": '"other"'}, {"If-Match": "W/" + etag}, {"If-Match": '"a", "b"'}, {"If-None-Match": "*"}, {"If-None-Match": etag}):
        refused(put(s, at, mine, **header), 412, etag)
        assert np.array_equal(get(s, at)[0], np.arange(4))
    newer = put(s, at, mine, **{"If-Match": f'"x", {etag}'})[1]["ETag"]
    refused(put(s, at, mine, **{"If-Match": etag}), 412, newer)
    refused(s.ask("DELETE", at, headers={"If-Match": etag}), 412)
    ok(put(s, at, mine, **{"If-Match": "*"}))
    ok(put(s, at, mine, **{"If-None-Match": newer}))


def test_what_does_not_fit(s):
    at, etag = new(s, np.arange(4, dtype=np.int32), cut(s, "x"))
    refused(put(s, at, np.arange(5, dtype=np.int32)), 400, "20 bytes")
    refused(s.ask("PUT", at + "/data", write_npy(np.arange(4)), NPY), 422, "4xi32", "4xi64", "do not change")
    refused(s.ask("PUT", at + "/data", write_npy(np.arange(5, dtype=np.int32)), NPY), 422, "5xi32")
    refused(s.ask("PUT", at + "/data", {"dtype": "int32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}), 422, "2x2xi32")
    refused(s.ask("PUT", at + "/data", [1, 2, 3]), 422)
    refused(s.ask("PUT", at + "/data", b"abcd", {"Content-Type": "image/png"}), 415)
    refused(put(s, at, np.arange(4, dtype=np.int32), "?slice=0:3"), 400, "16 bytes", "12")
    refused(put(s, at, np.arange(1, dtype=np.int32), "?slice=9"), 422, "slice")
    refused(put(s, at, np.arange(4, dtype=np.int32), "?offset=9"), 422, "offset")
    with socket.create_connection(("127.0.0.1", s.port)) as client:  # goes away in the middle
        client.sendall(f"PUT {at}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 16\r\n\r\nabcdefgh".encode())
    assert get(s, at)[1] == etag and np.array_equal(get(s, at)[0], np.arange(4))


def test_states(s):
    values = np.arange(4, dtype=np.int32)
    at, _ = new(s, values)
    ok(s.ask("POST", at + ":move"), 201)
    refused(put(s, at, values), 409, "donated")
    at, _ = new(s, values)
    ok(s.ask("DELETE", at), 204)
    refused(put(s, at, values), 404)
    pending = ok(s.ask("POST", "/v1/arrays:assemble", {"shape": [4], "dtype": "int32", "mesh": mesh_of(s, ["x"], [0, 1]), "spec": [["x"]]}), 201)
    refused(put(s, f"/v1/arrays/{pending['id']}", values), 409, "not complete")
    refused(put(s, "/v1/arrays/arr_none", values), 404)


def test_slices_are_numpys(s):
    rng = np.random.default_rng(3)
    for round_ in range(60):
        shape = tuple(int(n) for n in rng.integers(0, 7, int(rng.integers(0, 5))))
        dtype = str(rng.choice(["int8", "float32", "complex128", "bool"]))
        whole = np.frombuffer(awkward_bytes(rng, dtype, shape), dtype).reshape(shape).copy()
        place = f"&mesh={mesh_of(s, ['x', 'y'], [[0, 1], [2, 3], [4, 5]])}&spec={spec_of(rng, shape, ['x', 'y'])}"
        at, _ = new(s, whole, place + ("&durability=memory" if round_ % 3 else ""))
        for version in range(2, 5):
            fields, index = [], []
            for size in shape:
                start, stop, step = int(rng.integers(-size - 1, size + 2)), int(rng.integers(-size - 1, size + 2)), int(rng.integers(1, 4))
                fields.append(f"{start}:{stop}:{step}")
                index.append(slice(start, stop, step))
            part = np.frombuffer(awkward_bytes(rng, dtype, whole[tuple(index)].shape), dtype).reshape(whole[tuple(index)].shape)
            document = ok(put(s, at, part, "?slice=" + ",".join(fields)))
            whole[tuple(index)] = part
            assert document["version"] == version
            assert ok(s.ask("GET", at + "/data")) == whole.tobytes(), (shape, dtype, fields)


def test_a_job_sees_what_it_was_accepted_with(s):
    values = np.arange(4, dtype=np.int32)
    for durability in ("durable", "memory"):
        at, _ = new(s, values, "&durability=" + durability)
        x = {"array": at.rsplit("/", 1)[1]}
        body = {"program": {"text": COUNT}, "arguments": [x, {"dtype": "int32", "shape": [], "data": 2000000000}]}
        session = ok(s.ask("POST", "/v1/sessions", {}), 201)["id"]
        job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]
        refused(put(s, at, values + 1), 409, "accepted jobs")
        refused(put(s, at, values[:1], "?slice=0:1"), 409, "accepted jobs")
        ok(s.ask("GET", at + "/data"))
        s.ask("DELETE", f"/v1/jobs/{job}")
        wait_over(s, job)
        ok(put(s, at, values + 1))
        body["arguments"][1]["data"] = 10
        job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]
        assert wait_over(s, job)["answer"]["results"][0]["data"] == [11, 12, 13, 14]
        ok(put(s, at, values + 2))
        got = ok(s.ask("POST", "/v1/run", {"program": {"text": DOUBLE}, "arguments": [x]}))
        assert got["results"][0]["data"] == [4, 6, 8, 10]
        # A job that takes the array for good.
        got = ok(s.ask("POST", "/v1/run", {"program": {"text": DOUBLE}, "arguments": [x], "donate": [0]}))
        refused(put(s, at, values), 409, "donated")


def wait_over(s, job):
    deadline = time.time() + 60
    while time.time() < deadline:
        document = ok(s.ask("GET", f"/v1/jobs/{job}?wait=10"))
        if document["state"] in ("done", "failed", "cancelled"):
            return document
    raise AssertionError("the job does not end")


def in_threads(*works):
    """Runs them at once; what one throws is thrown here."""
    wrong = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def test_readers_see_one_version_whole(s):
    """Each version is one number everywhere. Whoever reads, by whatever way, sees one number, and always the same under one ETag."""
    for durability in ("durable", "memory"):
        at, etag = new(s, np.zeros((48, 40), np.int32), cut(s, "x", "y") + "&durability=" + durability)
        by_etag, lock, over = {etag: 0}, threading.Lock(), threading.Event()

        def write():
            try:
                for number in range(1, 60):
                    status, headers, body = put(s, at, np.full((48, 40), number, np.int32))
                    assert status == 200, body
                    with lock:
                        assert by_etag.setdefault(headers["ETag"], number) == number
            finally:
                over.set()

        def read(query):
            last = 0
            while not over.is_set():
                status, headers, body = s.ask("GET", at + "/data" + query)
                assert status == 200
                seen = np.unique(np.frombuffer(body, np.int32))
                assert seen.size == 1 and seen[0] >= last, (seen, last)
                last = int(seen[0])
                with lock:
                    assert by_etag.setdefault(headers["ETag"], last) == last

        in_threads(write, lambda: read(""), lambda: read("?slice=::7,3:40:5"), lambda: read("?slice=15:17"))


def test_writers_of_parts_at_once(s):
    """Four clients write rows of their own, a hundred times in all: nothing is lost, every write is a version."""
    rows = np.zeros((8, 6), np.int32)
    at, _ = new(s, rows, cut(s, "y", "x"))

    def write(mine):
        for number in range(25):
            values = np.full((2, 6), 100 * mine + number, np.int32)
            ok(put(s, at, values, f"?slice={mine * 2}:{mine * 2 + 2}"))

    in_threads(*(lambda mine=mine: write(mine) for mine in range(4)))
    expected = np.repeat(np.arange(4) * 100 + 24, 2)[:, None] * np.ones(6, np.int32)
    assert np.array_equal(get(s, at)[0], expected)
    assert ok(s.ask("GET", at))["version"] == 101


def test_compare_and_swap(s):
    """Three clients count to 60 together with If-Match: an increment that did not hold is refused, none is lost."""
    at, _ = new(s, np.zeros(1, np.int32))

    def count():
        done = 0
        while done < 20:
            value, etag = get(s, at)
            status = put(s, at, value + 1, **{"If-Match": etag})[0]
            assert status in (200, 412), status
            done += status == 200

    in_threads(count, count, count)
    assert get(s, at)[0].tolist() == [60]


def test_kills(_):
    """kill -9 at any moment: an acknowledged version is there, one that was not is there whole or not at all; nothing is left over."""
    rng = random.Random(19)
    with Meshd(sys.argv[1], "--devices", "8") as s:
        at, _ = new(s, np.zeros((600, 40), np.int32), cut(s, "x", "y"))
        memory, _ = new(s, np.zeros(4, np.int32), "&durability=memory")
        acknowledged = 0
        for round_ in range(8):
            started = [acknowledged]

            def write():
                nonlocal acknowledged
                try:
                    for number in range(acknowledged + 1, acknowledged + 500):
                        started[0] = number
                        if number % 2:
                            status = put(s, at, np.full((600, 40), number, np.int32))[0]
                        else:
                            for first in (0, 300):
                                status = put(s, at, np.full((300, 40), number, np.int32), f"?slice={first}:{first + 300}")[0]
                        if status == 200:
                            acknowledged = number
                except OSError:
                    pass

            writer = threading.Thread(target=write)
            writer.start()
            until(lambda: started[0] > acknowledged, "the first write behind the start")
            time.sleep(rng.uniform(0, 0.15))
            s.stop(signal.SIGKILL)
            writer.join()
            s.start()
            value, _ = get(s, at)
            for half in (value[:300], value[300:]):
                assert np.unique(half).size == 1 and acknowledged <= half[0, 0] <= started[0], (np.unique(half), acknowledged, started)
            if started[0] % 2:
                assert np.unique(value).size == 1
            if round_ == 0:
                refused(put(s, memory, np.zeros(4, np.int32)), 410, "lost")
            acknowledged = max(acknowledged, int(value.min()))
            ok(put(s, at, np.full((600, 40), acknowledged, np.int32)))
        # A job that a kill left running sees the same argument again, and it cannot be replaced meanwhile.
        at, _ = new(s, np.arange(4, dtype=np.int32))
        body = {"program": {"text": COUNT}, "arguments": [{"array": at.rsplit("/", 1)[1]}, {"dtype": "int32", "shape": [], "data": 1500000}]}
        session = ok(s.ask("POST", "/v1/sessions", {}), 201)["id"]
        job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]
        s.stop(signal.SIGKILL)
        s.start()
        status = put(s, at, np.zeros(4, np.int32))[0]
        assert status in (200, 409)
        document = wait_over(s, job)
        assert document["answer"]["results"][0]["data"] == [1500000, 1500001, 1500002, 1500003], (status, document)
        ok(put(s, at, np.ones(4, np.int32)))
        files = sum(1 for path in pathlib.Path(s.folder, "data", "blobs").rglob("*") if path.is_file())
        assert s.stop() == 0
        s.start()
        left = sum(1 for path in pathlib.Path(s.folder, "data", "blobs").rglob("*") if path.is_file())
        assert left == 6 + 1 and files >= left, (files, left)


run_tests(globals())
