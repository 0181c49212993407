#!/usr/bin/env python3
"""Digest fields (RFC 9530): bodies that are not what they were announced with are refused and change nothing; answers carry theirs."""
import base64
import gzip
import hashlib
import json
import socket

import numpy as np

from file_formats import RAW, chunked, mesh_of, ok, refused, run_tests


def sha(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


def count(s):
    return len(ok(s.ask("GET", "/v1/arrays?limit=1000"))["items"])


def test_bodies_are_held_to_their_digest(s):
    before = count(s)
    for size in (0, 5, 70_000, 3_000_000):  # taken in by the reactor, and streamed
        data = np.random.default_rng(size).bytes(size)
        target = f"/v1/arrays?dtype=uint8&shape={size}&durability=memory"
        for field in ("Content-Digest", "Repr-Digest"):
            for wrong in (data + b"x", b"x" + data[1:] if data else b"x"):
                if size:
                    refused(s.ask("POST", target, data, {**RAW, field: sha(wrong)}), 400, "digest_mismatch", field, sha(wrong), sha(data))
            made = ok(s.ask("POST", target, data, {**RAW, field: "md5=:AAAA:, " + sha(data)}), 201)
            packed = gzip.compress(data)
            coded = {**RAW, "Content-Encoding": "gzip"}
            ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data", packed, {**coded, field: sha(packed)}))
            refused(s.ask("PUT", f"/v1/arrays/{made['id']}/data", packed, {**coded, field: sha(packed + b"x")}), 400, "digest_mismatch")
            if size:
                pieces = {**RAW, "Transfer-Encoding": "chunked", field: sha(b"")}
                refused(chunked(s, "PUT", f"/v1/arrays/{made['id']}/data", [data[:3], data[3:]], pieces), 400, "digest_mismatch")
            document = ok(s.ask("GET", f"/v1/arrays/{made['id']}"))
            assert document["version"] == 2 and ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == data
            ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)
    assert count(s) == before
    mesh = {"axis_names": ["x"], "devices": [0, 1]}
    text = json.dumps(mesh).encode()
    kind = {"Content-Type": "application/json"}
    refused(s.ask("POST", "/v1/meshes", text, {**kind, "Content-Digest": sha(b"")}), 400, "digest_mismatch")
    assert s.ask("POST", "/v1/meshes", text, {**kind, "Content-Digest": sha(text), "Repr-Digest": sha(text)})[0] in (200, 201)
    refused(s.ask("POST", "/v1/meshes", text, {**kind, "Content-Digest": sha(text), "Repr-Digest": sha(b"")}), 400, "Repr-Digest")


def test_digests_that_cannot_be_read(s):
    for value in ("sha-256", "sha-256=", "sha-256=1", "sha-256=::", "sha-256=:AAAA:", "sha-256=:" + "A" * 44 + ":", "sha-256=:" + "!" * 43 + "=:"):
        refused(s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0]}, {"Content-Digest": value}), 400, "Content-Digest", "base64")
    assert s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0]}, {"Content-Digest": "sha-512=:AAAA:"})[0] in (200, 201)


def test_the_next_request_of_a_connection_is_read(s):
    """A refusal inside of a stream ends the body where it says it ends, or the connection."""
    data = b"x" * 100_000
    head = (f"POST /v1/arrays?dtype=uint8&shape=100000 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Digest: {sha(b'other')}\r\nContent-Length: {len(data)}\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", s.port), timeout=20) as client:
        client.sendall(head + data + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400") and b"digest_mismatch" in answer and b"HTTP/1.1 5" not in answer


def test_answers_carry_the_digest_that_is_wanted(s):
    data = np.arange(600 * 500, dtype=np.float32).tobytes()
    place = f"&mesh={mesh_of(s, ['x', 'y'], [[0, 1], [2, 3]])}&spec=x,y"
    at = "/v1/arrays/" + ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=600,500" + place, data, RAW), 201)["id"]
    tall = "/v1/arrays/" + ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=30000,10" + place, data, RAW), 201)["id"]
    for target in (at + "/data", at + "/data?format=npy", at + "/data?format=safetensors", at + "/shards/3", tall + "/data", tall + "/data?format=npz"):
        whole = ok(s.ask("GET", target))
        for field in ("Want-Repr-Digest", "Want-Content-Digest"):
            status, headers, body = s.ask("GET", target, headers={field: "sha-512=3, sha-256=10"})
            assert (status, headers["Repr-Digest"], body) == (200, sha(whole), whole)
        status, headers, body = s.ask("GET", target, headers={"Want-Repr-Digest": "sha-256=1", "Range": "bytes=3-9"})
        assert (status, headers["Repr-Digest"], body) == (206, sha(whole), whole[3:10]), "that of the whole"
        assert "Repr-Digest" not in s.ask("GET", target, headers={"Want-Repr-Digest": "sha-256=0"})[1]
        assert "Repr-Digest" not in s.ask("GET", target)[1]


run_tests(globals())
