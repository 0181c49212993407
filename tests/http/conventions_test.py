"""What every client may count on, row by row, against the binary: conventions_test.py BINARY [ROW].

A row is a topic of HTTP (conditions, ranges, digests, ...) and the function that tries it as a client would; `exchange` is the
raw request and answer. The rows that a shell sees are in curl_test.py, the shapes of documents in contract_test.py."""

import base64
import datetime
import gzip
import hashlib
import http.client
import json
import pathlib
import re
import socket
import struct
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import SPIN, Meshd, run_stories

RUN = {"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32> }"},
       "arguments": [{"dtype": "float32", "shape": [2], "data": [1.5, -2]}]}
SPINNING = {"program": {"text": SPIN}, "arguments": [{"dtype": "int32", "shape": [], "data": 1000000000}], "deadline": 60}
VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}
RAW = {"Content-Type": "application/octet-stream"}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers.items())} {self.body[:300]!r}"


class Client:
    def __init__(self, server):
        self.server, self.port = server, server.port

    def ask(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = dict(headers or {})
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
                headers.setdefault("Content-Type", "application/json")
            connection.putrequest(method, target, skip_accept_encoding=True)
            if body is not None:
                body = body.encode() if isinstance(body, str) else body
                headers["Content-Length"] = str(len(body))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def want(self, status, method, target, body=None, headers=None):
        answer = self.ask(method, target, body, headers)
        assert answer.status == status, f"{method} {target}: expected {status}, got {answer!r}"
        return answer

    def refused(self, status, code, method, target, body=None, headers=None):
        answer = self.want(status, method, target, body, headers)
        assert answer.headers["Content-Type"] == "application/problem+json", answer
        problem = answer.json()
        assert problem["code"] == code and problem["status"] == status and problem["detail"], problem
        assert problem["type"] == f"/docs/errors#{code}" and problem["instance"] == answer.headers["X-Request-Id"], problem
        return answer

    def raw(self, text):
        """Bytes on a socket; everything that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as wire:
            wire.sendall(text.encode())
            out = b""
            while True:
                piece = wire.recv(65536)
                if not piece:
                    return out
                out += piece

    def array(self, **query):
        target = "/v1/arrays" + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
        return self.want(201, "POST", target, VALUE)

    def mesh(self):
        return self.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1]}).json()["id"]


def digest(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


def methods_and_allow(c):
    answer = c.refused(405, "method_not_allowed", "PUT", "/v1/info")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS", answer
    assert c.want(204, "OPTIONS", "/v1/jobs/job_x").headers["Allow"] == "GET, HEAD, PUT, DELETE, OPTIONS"
    for method in ("TRACE", "BREW"):
        assert c.want(405, method, "/v1/arrays").headers["Allow"] == "GET, HEAD, POST, DELETE, OPTIONS"


def head_is_get_without_body(c):
    array = c.array().json()["id"]
    for target in ("/v1/info", "/v1/ops", "/openapi.yaml", "/", f"/v1/arrays/{array}", f"/v1/arrays/{array}/data", "/v1/nothing", "/livez"):
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            get, head = c.ask("GET", target, headers=headers), c.ask("HEAD", target, headers=headers)
            assert (head.status, head.body) == (get.status, b""), (target, head)
            for name in ("Content-Type", "Content-Length", "Content-Encoding", "ETag", "Vary"):
                assert head.headers[name] == get.headers[name] or target == "/v1/info", (target, name, head, get)


def errors_are_problems(c):
    answer = c.refused(422, "invalid_request", "POST", "/v1/run", {**RUN, "num_partitions": "2", "a/b~": 1})
    entries = answer.json()["errors"]
    assert {"/num_partitions", "/a~1b~0"} == {entry["pointer"] for entry in entries} and all(entry["detail"] for entry in entries), entries


def json_is_strict(c):
    for body in ('{"name": "a", "name": "b"}', '{"name": 1}', '{"name": "a"', "{'name': 'a'}", '{"name": NaN}', '{"name": "\\ud800"}', "[]", "\xff"):
        assert c.ask("POST", "/v1/sessions", body.encode("latin-1"), {"Content-Type": "application/json"}).status in (400, 422), body
    for wrong in (True, 3.7, "1", None, -1, [1]):
        answer = c.ask("POST", "/v1/run", {**RUN, "num_partitions": wrong})
        assert answer.status == 422 and answer.json()["errors"][0]["pointer"] == "/num_partitions", (wrong, answer)


def idempotency(c):
    key = {"Idempotency-Key": "conventions"}
    first = c.want(200, "POST", "/v1/run", RUN, key)
    again = c.want(200, "POST", "/v1/run", RUN, key)
    assert again.headers["Idempotency-Replayed"] == "true" and again.body == first.body and first.headers["Idempotency-Replayed"] is None
    c.refused(422, "idempotency_key_reused", "POST", "/v1/run", {**RUN, "profile": True}, key)
    running = {"Idempotency-Key": "running", "Prefer": "respond-async"}
    job = c.want(202, "POST", "/v1/run", SPINNING, running).headers["Location"]
    assert c.refused(409, "idempotency_in_progress", "POST", "/v1/run", SPINNING, running).headers["Location"] == job
    c.want(202, "DELETE", job)


def put_job_is_idempotent(c):
    job = "/v1/jobs/job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41"
    c.refused(428, "precondition_required", "PUT", job, RUN)
    made = c.want(201, "PUT", job, RUN, {"If-None-Match": "*", "Prefer": "wait=30"})
    assert made.headers["Location"] == job and made.headers["Preference-Applied"] == "wait=30", made
    assert made.json()["state"] == "done" and made.json()["answer"]["results"][0]["data"] == [3, -4], made
    c.refused(412, "precondition_failed", "PUT", job, RUN, {"If-None-Match": "*"})
    read = c.want(200, "GET", job)
    assert read.json()["answer"] == made.json()["answer"] and read.headers["ETag"] == made.headers["ETag"]
    c.refused(422, "invalid_request", "PUT", "/v1/jobs/mine", RUN, {"If-None-Match": "*"})
    # A request that is refused leaves the name free.
    other = job[:-1] + "2"
    c.refused(422, "invalid_argument", "PUT", other, {**RUN, "arguments": []}, {"If-None-Match": "*"})
    c.want(201, "PUT", other, RUN, {"If-None-Match": "*"})


def respond_async_and_wait(c):
    answer = c.want(202, "POST", "/v1/run", RUN, {"Prefer": "respond-async"})
    assert answer.headers["Preference-Applied"] == "respond-async" and answer.headers["Retry-After"] == "1"
    assert c.want(200, "GET", answer.headers["Location"] + "?wait=30").json()["state"] == "done"
    answer = c.want(200, "POST", "/v1/run", RUN, {"Prefer": "foo, wait=30; x=y"})
    assert answer.headers["Preference-Applied"] == "wait=30" and answer.json()["results"][0]["data"] == [3, -4]
    answer = c.want(202, "POST", "/v1/run", SPINNING, {"Prefer": "wait=0, respond-async"})
    assert answer.headers["Preference-Applied"] == "respond-async, wait=0" and answer.json()["state"] in ("queued", "running")
    c.want(202, "DELETE", answer.headers["Location"])
    # Not a preference but part of one.
    assert "Preference-Applied" not in c.want(200, "POST", "/v1/run", RUN, {"Prefer": "no-respond-async"}).headers


def return_minimal(c):
    for target, body in (("/v1/arrays", VALUE), ("/v1/sessions", {}), ("/v1/meshes", {"axes": [{"name": "minimal", "size": 3}]})):
        answer = c.want(201, "POST", target, body, {"Prefer": "return=minimal"})
        assert answer.body == b"" and answer.headers["Preference-Applied"] == "return=minimal" and answer.headers["Content-Type"] is None
        assert c.want(200, "GET", answer.headers["Location"]).json()["id"] == answer.headers["Location"].rsplit("/", 1)[1]
        answer = c.ask("POST", target, body, {"Prefer": "return=representation"})
        assert answer.json()["id"], answer


def conditions_on_reads(c):
    made = c.array()
    array, mesh = made.headers["Location"], "/v1/meshes/" + c.mesh()
    job = c.want(201, "PUT", "/v1/jobs/job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b51", RUN, {"If-None-Match": "*", "Prefer": "wait=30"}).headers["Location"]
    assert c.want(200, "GET", array).headers["ETag"] == made.headers["ETag"]
    for target in (array, array + "/data", mesh, job):
        etag = c.want(200, "GET", target).headers["ETag"]
        assert re.fullmatch(r'"[^"]+"', etag), etag
        for known in (etag, "*", f'"x", W/{etag}', f'"y",{etag}'):
            answer = c.want(304, "GET", target, headers={"If-None-Match": known})
            assert answer.body == b"" and answer.headers["ETag"] == etag and answer.headers["Content-Type"] is None, answer
        c.want(200, "GET", target, headers={"If-None-Match": '"x"'})
        c.want(200, "GET", target, headers={"If-Match": f'"x", {etag}'})
        c.refused(412, "precondition_failed", "GET", target, headers={"If-Match": '"x"'})
    tagged = c.want(200, "GET", array).headers["ETag"]
    c.want(201, "POST", array + ":move")
    assert c.want(200, "GET", array, headers={"If-None-Match": tagged}).json()["state"] == "donated", "another state, another ETag"


def conditions_on_changes(c):
    made = c.array()
    array, etag = made.headers["Location"], made.headers["ETag"]
    for method, target in (("DELETE", array), ("POST", array + ":move"), ("POST", array + ":delete")):
        c.refused(412, "precondition_failed", method, target, headers={"If-Match": '"other"'})
        c.refused(412, "precondition_failed", method, target, headers={"If-Match": f"W/{etag}"})
    c.want(204, "DELETE", array, headers={"If-Match": f'"other", {etag}'})
    mesh = c.want(201, "POST", "/v1/meshes", {"axes": [{"name": "conditions", "size": 5}]})
    c.refused(412, "precondition_failed", "DELETE", mesh.headers["Location"], headers={"If-Match": '"other"'})
    c.want(204, "DELETE", mesh.headers["Location"], headers={"If-Match": mesh.headers["ETag"]})
    job = c.want(202, "POST", "/v1/run", SPINNING, {"Prefer": "respond-async"}).headers["Location"]
    c.refused(412, "precondition_failed", "DELETE", job, headers={"If-Match": '"other"'})
    c.want(202, "DELETE", job, headers={"If-Match": "*"})


def deleted_is_404_donated_is_410(c):
    array = c.array().headers["Location"]
    c.want(204, "DELETE", array)
    for target in (array, array + "/data", array + "/shards"):
        c.refused(404, "not_found", "GET", target)
    donated = c.array().headers["Location"]
    taken = c.want(201, "POST", donated + ":move").headers["Location"]
    c.refused(410, "deleted_or_donated", "GET", donated + "/data")
    c.want(200, "GET", taken + "/data")


def made_things_are_there_at_once(c):
    for method, target, body in (("POST", "/v1/arrays", VALUE), ("POST", "/v1/sessions", {}), ("POST", "/v1/meshes", {"axes": [{"name": "there", "size": 2}]}),
                                 ("POST", "/v1/programs", RUN["program"])):
        answer = c.ask(method, target, body)
        assert answer.status in (200, 201), answer
        assert c.want(200, "GET", answer.headers["Location"]).json()["id"] == answer.json()["id"]


def ranges(c):
    data = bytes(range(200))
    at = c.want(201, "POST", "/v1/arrays?dtype=uint8&shape=200", data, RAW).headers["Location"] + "/data"
    whole = c.want(200, "GET", at)
    assert whole.body == data and whole.headers["Accept-Ranges"] == "bytes"
    for asked, first, last in (("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("bytes=190-", 190, 199), ("bytes=-5", 195, 199), ("bytes=150-999", 150, 199)):
        part = c.want(206, "GET", at, headers={"Range": asked})
        assert part.body == data[first:last + 1] and part.headers["Content-Range"] == f"bytes {first}-{last}/200", part
        assert part.headers["ETag"] == whole.headers["ETag"]
        head = c.want(206, "HEAD", at, headers={"Range": asked})
        assert head.headers["Content-Length"] == str(last - first + 1)
    for asked in ("bytes=0-1,5-6", "pages=1-2", "bytes=5-1", "bytes=a-b"):
        assert c.want(200, "GET", at, headers={"Range": asked}).body == data, asked
    for asked in ("bytes=200-", "bytes=500-600", "bytes=-0"):
        assert c.refused(416, "range_not_satisfiable", "GET", at, headers={"Range": asked}).headers["Content-Range"] == "bytes */200"
    c.want(206, "GET", at, headers={"Range": "bytes=0-9", "If-Range": whole.headers["ETag"]})
    for condition in ('"other"', "W/" + whole.headers["ETag"], "Sun, 06 Nov 1994 08:49:37 GMT"):
        assert c.want(200, "GET", at, headers={"Range": "bytes=0-9", "If-Range": condition}).body == data, condition
    # Ranges are of the plain bytes, whatever coding is acceptable.
    part = c.want(206, "GET", at, headers={"Range": "bytes=3-5", "Accept-Encoding": "gzip, zstd"})
    assert part.body == data[3:6] and part.headers["Content-Encoding"] is None


def slices_and_their_headers(c):
    data = struct.pack("<12f", *range(12))
    at = c.want(201, "POST", "/v1/arrays?dtype=float32&shape=4,3", data, RAW).headers["Location"] + "/data"
    answer = c.want(200, "GET", at + "?slice=1:3,::2")
    assert [answer.headers[name] for name in ("Array-Dtype", "Array-Shape", "Array-Order")] == ["float32", "2,2", "C"]
    assert struct.unpack("<4f", answer.body) == (3, 5, 6, 8)
    c.refused(422, "invalid_query", "GET", at + "?slice=1,2,3")


def digests_of_requests(c):
    data = bytes(range(100)) * 1000
    target = "/v1/arrays?dtype=uint8&shape=100000"
    for name in ("Content-Digest", "Repr-Digest"):
        assert c.want(201, "POST", target, data, {**RAW, name: digest(data)}).json()["bytes"] == 100000
        assert name in c.refused(400, "digest_mismatch", "POST", target, data, {**RAW, name: digest(b"other")}).json()["detail"]
        c.want(201, "POST", target, data, {**RAW, name: "sha-512=:AAAA:, " + digest(data)})
        c.want(201, "POST", target, data, {**RAW, name: "sha-512=:AAAA:"})  # not known here, so nothing to hold
        c.refused(400, "malformed_request", "POST", target, data, {**RAW, name: "sha-256=:AAAA:"})
    coded = gzip.compress(data)
    c.want(201, "POST", target, coded, {**RAW, "Content-Encoding": "gzip", "Content-Digest": digest(coded)})
    c.refused(400, "digest_mismatch", "POST", target, coded, {**RAW, "Content-Encoding": "gzip", "Content-Digest": digest(data)})
    before = len(c.want(200, "GET", "/v1/arrays?limit=1000").json()["items"])
    c.refused(400, "digest_mismatch", "POST", target, data, {**RAW, "Content-Digest": digest(b"")})
    assert len(c.want(200, "GET", "/v1/arrays?limit=1000").json()["items"]) == before, "nothing is left of it"
    c.refused(400, "digest_mismatch", "POST", "/v1/sessions", {"name": "a"}, {"Content-Digest": digest(b"{}")})
    c.refused(400, "digest_mismatch", "DELETE", c.array().headers["Location"], headers={"Content-Digest": digest(b"x")})


def digests_of_answers(c):
    data = bytes(range(250)) * 400
    at = c.want(201, "POST", "/v1/arrays?dtype=uint8&shape=100000", data, RAW).headers["Location"] + "/data"
    assert c.want(200, "GET", at).headers["Repr-Digest"] is None
    answer = c.want(200, "GET", at, headers={"Want-Repr-Digest": "sha-512=3, sha-256=10", "Want-Content-Digest": "sha-256=1"})
    assert answer.headers["Repr-Digest"] == answer.headers["Content-Digest"] == digest(data)
    part = c.want(206, "GET", at, headers={"Range": "bytes=5-9", "Want-Repr-Digest": "sha-256=1", "Want-Content-Digest": "sha-256=1"})
    assert part.headers["Repr-Digest"] == digest(data) and part.headers["Content-Digest"] == digest(data[5:10])
    assert c.want(200, "GET", at, headers={"Want-Repr-Digest": "sha-256=0"}).headers["Repr-Digest"] is None
    text = c.want(200, "GET", "/openapi.json", headers={"Want-Content-Digest": "sha-256=1", "Accept-Encoding": "gzip"})
    assert text.headers["Content-Encoding"] == "gzip" and text.headers["Content-Digest"] == digest(text.body)
    assert c.want(200, "HEAD", at, headers={"Want-Repr-Digest": "sha-256=1"}).headers["Repr-Digest"] == digest(data)


def lists_have_cursors(c):
    made = {c.array(name="paged").json()["id"] for _ in range(5)}
    seen, target = [], "/v1/arrays?name=paged&limit=2"
    while target:
        page = c.want(200, "GET", target)
        seen += [item["id"] for item in page.json()["items"]]
        link = page.headers["Link"]
        assert (page.json()["next"] is None) == (link is None), page
        target = link and re.fullmatch(r'<([^>]+)>; rel="next"', link).group(1)
    assert len(seen) == 5 and set(seen) == made, seen
    for wrong in ("limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "cursor=%00", "cursor=a%20b", "more=1"):
        assert c.ask("GET", "/v1/arrays?" + wrong).status in (400, 422), wrong
    for target in ("/v1/meshes", "/v1/programs", "/v1/sessions", "/v1/jobs"):
        assert set(c.want(200, "GET", target + "?limit=1").json()) == {"items", "next"}


def events_resume(c):
    session = c.want(201, "POST", "/v1/sessions", {}).headers["Location"]
    answer = c.raw(f"GET {session}/events?after=x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b" 422 " in answer.split(b"\r\n")[0]
    with socket.create_connection(("127.0.0.1", c.port), timeout=10) as wire:
        wire.sendall(f"GET {session}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        head = wire.recv(4096)
    assert b"200 OK" in head and b"text/event-stream" in head and b"Content-Encoding" not in head, head
    assert c.want(200, "GET", session + "/effects").json() == {"items": [], "next": None}


def negotiation(c):
    at = c.array().headers["Location"] + "/data"
    for accept, media in ((None, "application/octet-stream"), ("*/*", "application/octet-stream"), ("application/json", "application/json"),
                          ("application/x-npy", "application/x-npy"), ("application/*;q=0.5, application/json", "application/json"),
                          ("application/json;q=0.2, application/x-npy;q=0.9, image/png", "application/x-npy"),
                          ("application/octet-stream;q=0, */*", "application/x-npy"), ("Application/NPY", "application/x-npy"),
                          ("text/html, */*;q=0.1", "application/octet-stream")):
        answer = c.want(200, "GET", at, headers={"Accept": accept} if accept else {})
        assert answer.headers["Content-Type"] == media and "Accept" in answer.headers["Vary"], answer
    assert c.want(200, "GET", at + "?format=json", headers={"Accept": "application/x-npy"}).headers["Content-Type"] == "application/json"
    assert "application/x-npy" in c.refused(406, "not_acceptable", "GET", at, headers={"Accept": "image/png"}).json()["detail"]
    assert c.refused(406, "not_acceptable", "GET", at, headers={"Accept": "application/json;q=0"})
    for accept, media in (("text/html;q=0.5, application/json", "application/json"), ("text/*, application/json;q=0.9", "text/html"), ("*/*", "application/json")):
        assert c.want(200, "GET", "/docs/errors", headers={"Accept": accept}).headers["Content-Type"].startswith(media), accept


def unzstd(data):
    """Bytes of a zstd frame, by the library that meshd links; there is no module for it in Debian's python3."""
    import ctypes
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(64 << 20)
    size = library.ZSTD_decompress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)))
    assert size <= len(out), "not zstd"
    return out.raw[:size]


def zstd(data):
    import ctypes
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(len(data) + 4096)
    size = library.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:size]


def codings_of_answers(c):
    plain = c.want(200, "GET", "/openapi.json")
    assert plain.headers["Content-Encoding"] is None and plain.headers["Vary"] == "Accept-Encoding"
    for accept, coding in (("gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd", "zstd"), ("gzip;q=1, zstd;q=0.5", "gzip"), ("deflate, gzip, br, zstd", "zstd"),
                           ("*", "zstd"), ("zstd;q=0, *;q=0.1", "gzip"), ("br", None), ("deflate", "deflate"), ("deflate;q=0.5, gzip;q=0.2", "deflate"), ("identity", None), ("gzip;q=0", None)):
        answer = c.want(200, "GET", "/openapi.json", headers={"Accept-Encoding": accept})
        assert answer.headers["Content-Encoding"] == coding, (accept, answer)
        undo = {"gzip": gzip.decompress, "deflate": zlib.decompress, "zstd": unzstd, None: bytes}[coding]
        assert undo(answer.body) == plain.body and (coding is None or len(answer.body) < len(plain.body) / 3)
    zeros = bytes(1 << 20)
    at = c.want(201, "POST", "/v1/arrays?dtype=uint8&shape=1048576", zeros, RAW).headers["Location"] + "/data"
    etag = c.want(200, "GET", at).headers["ETag"]
    for coding, undo in (("gzip", gzip.decompress), ("zstd", unzstd)):
        answer = c.want(200, "GET", at, headers={"Accept-Encoding": coding})
        assert answer.headers["Content-Encoding"] == coding and undo(answer.body) == zeros and len(answer.body) < 10000
        assert answer.headers["ETag"] != etag and "Accept-Encoding" in answer.headers["Vary"]
        c.want(304, "GET", at, headers={"Accept-Encoding": coding, "If-None-Match": answer.headers["ETag"]})
        npy = c.want(200, "GET", at + "?format=npy", headers={"Accept-Encoding": coding})
        assert undo(npy.body).endswith(zeros) and undo(npy.body).startswith(b"\x93NUMPY")
    # What looks random is not coded: the first 64 KiB would save less than a tenth.
    noise = hashlib.shake_256(b"noise").digest(1 << 20)
    at = c.want(201, "POST", "/v1/arrays?dtype=uint8&shape=1048576", noise, RAW).headers["Location"] + "/data"
    answer = c.want(200, "GET", at, headers={"Accept-Encoding": "zstd, gzip"})
    assert answer.headers["Content-Encoding"] is None and answer.body == noise and "Accept-Encoding" in answer.headers["Vary"]
    small = c.want(200, "GET", "/livez", headers={"Accept-Encoding": "gzip"})
    assert small.headers["Content-Encoding"] is None and small.body == b"ok\n"


def codings_of_requests(c):
    zeros = bytes(400000)
    for coding, code in (("gzip", gzip.compress), ("zstd", zstd)):
        c.want(201, "POST", "/v1/sessions", code(b'{"name": "coded"}'), {"Content-Type": "application/json", "Content-Encoding": coding})
        array = c.want(201, "POST", "/v1/arrays?dtype=uint8&shape=400000", code(zeros), {**RAW, "Content-Encoding": coding}).headers["Location"]
        assert c.want(200, "GET", array + "/data").body == zeros
        bomb = code(bytes(8 << 20))
        c.refused(413, "body_too_large", "POST", "/v1/sessions", bomb, {"Content-Type": "application/json", "Content-Encoding": coding})
        c.refused(400, "malformed_body", "POST", "/v1/sessions", b"not coded at all", {"Content-Type": "application/json", "Content-Encoding": coding})
    answer = c.refused(415, "unsupported_media_type", "POST", "/v1/sessions", b"{}", {"Content-Type": "application/json", "Content-Encoding": "br"})
    assert answer.headers["Accept-Encoding"] == "gzip, deflate, zstd"


def request_ids(c):
    assert c.want(200, "GET", "/v1/info", headers={"X-Request-Id": "my.id-1_2"}).headers["X-Request-Id"] == "my.id-1_2"
    assert c.refused(404, "not_found", "GET", "/v1/x", headers={"X-Request-Id": "abc"}).json()["instance"] == "abc"
    for wrong in ("a b", "a" * 65, "<x>", ""):
        assert re.fullmatch(r"req-[0-9a-f-]+", c.want(200, "GET", "/v1/info", headers={"X-Request-Id": wrong}).headers["X-Request-Id"]), wrong


def traces(c):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parent = f"00-{trace}-00f067aa0ba902b7-01"
    answer = c.refused(404, "not_found", "GET", "/v1/arrays/arr_x", headers={"traceparent": parent, "X-Request-Id": "traced"})
    assert answer.json()["trace_id"] == trace
    assert re.fullmatch(f"00-{trace}-(?!00f067aa0ba902b7)[0-9a-f]{{16}}-01", answer.headers["traceparent"]), answer
    for wrong in ("00-" + "0" * 32 + "-00f067aa0ba902b7-01", "ff" + parent[2:], parent[:-1], parent + "-x", parent.upper(), "hello"):
        assert c.want(200, "GET", "/v1/info", headers={"traceparent": wrong}).headers["traceparent"] is None, wrong
    assert c.want(200, "GET", "/v1/info", headers={"traceparent": "01" + parent[2:] + "-more"}).headers["traceparent"].startswith("00-" + trace)
    assert c.want(200, "GET", "/v1/info").headers["traceparent"] is None
    deadline = time.time() + 10
    line = None
    while line is None and time.time() < deadline:
        lines = pathlib.Path(c.server.log.name).read_text(errors="replace").splitlines()
        line = next((text for text in lines if "request_id=traced" in text), None)
        time.sleep(0.05)
    assert line and f"trace_id={trace}" in line, line


def server_timing(c):
    timing = c.want(200, "POST", "/v1/run", RUN).headers["Server-Timing"]
    stages = {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([0-9]+\.[0-9]{4})", timing)}
    assert list(stages) == ["receive", "decode", "parse", "lower", "bind", "queue", "run", "commit", "encode", "other", "total"], timing
    total = stages.pop("total")
    assert total > 0 and abs(sum(stages.values()) - total) < 0.01 + total / 10, timing


def rate_limits(c):
    answer = c.want(202, "POST", "/v1/run", RUN, {"Prefer": "respond-async"})
    assert answer.headers["RateLimit-Policy"] == '"jobs";q=256;qu="concurrent-requests"' and re.fullmatch(r'"jobs";r=\d+', answer.headers["RateLimit"])
    session = c.want(201, "POST", "/v1/sessions", {}).headers["Location"]
    jobs, refused = [], None
    for _ in range(200):
        answer = c.ask("POST", session + "/jobs", SPINNING, {"Prefer": "respond-async"})
        if answer.status == 429:
            refused = answer
            break
        assert answer.status == 202, answer
        jobs.append(answer.headers["Location"])
    for job in reversed(jobs):
        c.ask("DELETE", job)
    assert refused is not None and refused.json()["code"] == "queue_full" and refused.headers["Retry-After"], (len(jobs), refused)
    assert refused.headers["RateLimit"].startswith('"jobs";r=') and len(jobs) >= 64
    c.want(204, "DELETE", session)


def versions_and_documents(c):
    info = c.want(200, "GET", "/v1/info").json()
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["version"]), info
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", info.get("commit", "0123456789ab")), info
    labels = f'version="{info["version"]}"' + (f',commit="{info["commit"]}"' if "commit" in info else "")
    assert f"meshd_build_info{{{labels}}} 1\n".encode() in c.want(200, "GET", "/metrics").body, labels
    job = c.want(200, "GET", c.want(200, "POST", "/v1/run", RUN, {"Prefer": "wait=30"}).headers["Location"]).json()
    build = info["version"] + ("+" + info["commit"] if "commit" in info else "")
    assert job["environment"].startswith(f"meshd {build}; "), (job, build)
    assert c.want(200, "GET", "/openapi.yaml").headers["Content-Type"] == "application/yaml"
    assert c.want(200, "GET", "/openapi.json").json()["openapi"] == "3.0.3"


def credentials(c):
    answer = c.refused(401, "unauthorized", "GET", "/v1/info", headers={"Authorization": "Basic YTpi"})
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def ids_and_times(c):
    array = c.array().json()
    assert re.fullmatch(r"arr_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", array["id"])
    made = datetime.datetime.strptime(array["created"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert abs((made - datetime.datetime.utcnow()).total_seconds()) < 60


def safe_for_browsers(c):
    answer = c.want(200, "GET", "/")
    assert "default-src" in answer.headers["Content-Security-Policy"] and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert c.want(200, "GET", "/v1/arrays").headers["Cache-Control"] == "no-store"


def security_contact(c):
    answer = c.want(200, "GET", "/.well-known/security.txt")
    assert answer.headers["Content-Type"].startswith("text/plain") and b"Contact: mailto:security@example.org\n" in answer.body
    expires = datetime.datetime.strptime(re.search(rb"Expires: (.*)Z", answer.body).group(1).decode()[:19], "%Y-%m-%dT%H:%M:%S")
    assert datetime.timedelta(0) < expires - datetime.datetime.utcnow() < datetime.timedelta(days=365)
    with Meshd(c.server.binary, "--devices", "2") as other:
        Client(other).refused(404, "not_found", "GET", "/.well-known/security.txt")


def pretty(c):
    plain = c.want(200, "GET", "/v1/devices").body
    for target in ("/v1/devices?pretty", "/v1/devices?pretty=1"):
        laid_out = c.want(200, "GET", target).body
        assert json.loads(laid_out) == json.loads(plain) and laid_out.count(b"\n") > 8 and laid_out.endswith(b"}\n"), laid_out
    assert c.want(200, "GET", "/v1/devices?pretty=false").body == plain
    answer = c.want(200, "POST", "/v1/run?pretty", RUN)
    assert b'"data": [3' in answer.body and answer.json()["results"][0]["data"] == [3, -4]
    assert c.refused(404, "not_found", "GET", "/v1/arrays/arr_x?pretty").body.count(b"\n") > 5


def probes(c):
    for target in ("/livez", "/readyz", "/startupz"):
        assert c.want(200, "GET", target).body == b"ok\n"
        assert b"HTTP/1.1 200 OK" in c.raw(f"GET {target} HTTP/1.0\r\n\r\n")
        c.want(200, "HEAD", target)
    assert b"[+]database ok" in c.want(200, "GET", "/readyz?verbose").body
    assert {"status", "checks", "version", "uptime_seconds"} == set(c.want(200, "GET", "/health").json())
    assert b" 204 " in c.raw("OPTIONS / HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
    assert b" 204 " in c.raw("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").split(b"\r\n")[0]


def malformed_heads_and_bodies(c):
    """What is wrong with a head is malformed_request, with the framing of a body malformed_body."""
    for head in ("GET /livez", "GET /livez HTTP/1.1\r\nHost: localhost\r\nBad name: x", "GET /livez HTTP/1.1\r\nX: no host"):
        answer = c.raw(head + "\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ") and b'"code":"malformed_request"' in answer, answer
    head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    for chunk in ("xyz\r\n", "2\r\n{}x\r\n"):
        answer = c.raw(head + chunk)
        assert answer.startswith(b"HTTP/1.1 400 ") and b'"code":"malformed_body"' in answer, answer


def errors_have_examples(c):
    """Every code has a hint and an example. error_examples_test.py sends their commands."""
    items = c.want(200, "GET", "/docs/errors").json()["items"]
    table = re.findall(r'^    \{"([a-z_]+)", ErrorKind', (pathlib.Path(__file__).resolve().parents[2] / "service/core/error_codes.h").read_text(), re.M)
    assert [item["code"] for item in items] == table and len(table) > 60
    page = c.want(200, "GET", "/docs/errors", headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["Content-Type"].startswith("text/html")
    for item in items:
        assert item["hint"].endswith(".") and item["example"]["code"] == item["code"] and item["example"]["detail"], item
        assert ("command" in item) != ("only_when" in item), item
        assert f'id="{item["code"]}"'.encode() in page.body


ROWS = [methods_and_allow, head_is_get_without_body, errors_are_problems, json_is_strict, idempotency, put_job_is_idempotent, respond_async_and_wait,
        return_minimal, conditions_on_reads, conditions_on_changes, deleted_is_404_donated_is_410, made_things_are_there_at_once, ranges,
        slices_and_their_headers, digests_of_requests, digests_of_answers, lists_have_cursors, events_resume, negotiation, codings_of_answers,
        codings_of_requests, request_ids, traces, server_timing, rate_limits, versions_and_documents, credentials, ids_and_times, safe_for_browsers,
        security_contact, pretty, probes, malformed_heads_and_bodies, errors_have_examples]


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile("w") as log:
        sys.exit(run_stories(ROWS, options=["--processes", "2", "--security-contact", "mailto:security@example.org", "--log-level", "info"],
                             log=log, teller=Client))
