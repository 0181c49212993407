#!/usr/bin/env python3
"""Resumable uploads (draft-ietf-httpbis-resumable-upload, interop version 8): uploads_test.py BINARY. Cut off by the client, by kill -9, by
another request; resumed where they stopped, with the same bytes at the end; bounded in memory, in number and in time."""
import base64
import hashlib
import json
import pathlib
import random
import re
import signal
import socket
import struct
import sys
import threading
import time

from server import memory_of, ok, refused, run_stories, until

RAW = {"Content-Type": "application/octet-stream"}
PART = {"Content-Type": "application/partial-upload"}
MIB = 1 << 20
BINARY = sys.argv[1]


def data_of(size, seed=1):
    return random.Random(seed).randbytes(size)


def raw_query(data, **more):
    return "&".join([f"dtype=uint8&shape={len(data)}", *(f"{name}={value}" for name, value in more.items())])


def begin(s, target, first=b"", headers=RAW, method="POST", **fields):
    """An upload that is begun with these bytes: its path."""
    status, got, document = s.ask(method, target, first, {**headers, "Upload-Complete": "?0", **fields})
    assert status == 201, (status, document)
    assert got["Location"] == "/v1/uploads/" + document["id"] and got["Upload-Complete"] == "?0"
    assert int(got["Upload-Offset"]) == document["offset"] == len(first)
    assert re.fullmatch(r"max-size=\d+, max-age=\d+", got["Upload-Limit"])
    return got["Location"]


def append(s, upload, offset, data=b"", last=False, **fields):
    return s.ask("PATCH", upload, data, {**PART, "Upload-Offset": str(offset), "Upload-Complete": "?1" if last else "?0", **fields})


def probe(s, upload):
    """What a request is told that begins at no offset that there is: whether another one appends. It interrupts nothing."""
    return append(s, upload, 1 << 40)[2]["code"]


def offset_of(s, upload):
    status, headers, body = s.ask("HEAD", upload)
    assert status == 200 and body == b"" and headers["Cache-Control"] == "no-store", (status, headers)
    return int(headers["Upload-Offset"])


class Cut:
    """A request of which the client sends a part."""

    def __init__(self, s, method, target, headers, length, sent):
        self.socket = socket.create_connection(("127.0.0.1", s.port), timeout=60)
        head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nContent-Length: {length}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.socket.sendall(head.encode() + b"\r\n" + sent)
        self.got = b""

    def read_until(self, words):
        while words not in self.got:
            more = self.socket.recv(65536)
            assert more, self.got
            self.got += more
        return self.got.decode()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


def bytes_of(s, array):
    return ok(s.ask("GET", f"/v1/arrays/{array['id']}/data"))


def in_three_requests(s):
    data = data_of(300_000)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data, name="three"), data[:100_000])
    assert offset_of(s, upload) == 100_000
    status, headers, _ = append(s, upload, 100_000, data[100_000:200_000])
    assert (status, headers["Upload-Complete"], headers["Upload-Offset"]) == (204, "?0", "200000")
    status, headers, made = append(s, upload, 200_000, data[200_000:], last=True)
    assert (status, headers["Upload-Complete"], made["name"]) == (201, "?1", "three")
    assert bytes_of(s, made) == data
    document = ok(s.ask("GET", upload))
    assert (document["complete"], document["offset"], document["length"]) == (True, len(data), len(data))
    assert document["result"] == "/v1/arrays/" + made["id"]
    refused(append(s, upload, len(data), last=True), 400, "upload_completed", made["id"])
    refused(append(s, upload, len(data), b"x"), 400, "upload_completed")
    ok(s.ask("DELETE", upload), 204)
    assert s.ask("HEAD", upload)[0] == 404
    assert bytes_of(s, made) == data


def every_operation_with_array_bytes(s):
    """A .npy file in pieces that split its head, a checkpoint, new data for an array, an array by its name."""
    data = data_of(64, 2)
    head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (8, 8), }".ljust(117) + b"\n"
    file = head + data
    upload = begin(s, "/v1/arrays", file[:3])
    append(s, upload, 3, file[3:70])
    _, _, made = append(s, upload, 70, file[70:], last=True)
    assert made["shape"] == [8, 8] and bytes_of(s, made) == data
    tensors = json.dumps({"w": {"dtype": "U8", "shape": [40], "data_offsets": [0, 40]}, "b": {"dtype": "U8", "shape": [24], "data_offsets": [40, 64]}})
    checkpoint = struct.pack("<Q", len(tensors)) + tensors.encode() + data
    upload = begin(s, "/v1/arrays:import?prefix=run/", checkpoint[:50])
    status, headers, listed = append(s, upload, 50, checkpoint[50:], last=True)
    assert (status, headers["Upload-Complete"]) == (201, "?1")
    assert [item["name"] for item in listed["items"]] == ["run/w", "run/b"]
    upload = begin(s, f"/v1/arrays/{made['id']}/data", data[32:], method="PUT")
    status, _, again = append(s, upload, 32, data[:32], last=True)
    assert (status, again["version"]) == (200, 2) and bytes_of(s, made) == data[32:] + data[:32]
    upload = begin(s, "/v1/arrays/by-name/a/b/c/data?dtype=uint8&shape=64", data[:1], method="PUT")
    status, _, named = append(s, upload, 1, data[1:], last=True)
    assert (status, named["name"]) == (201, "a/b/c") and bytes_of(s, named) == data


def clients_that_leave(s):
    """Closed and reset connections, in the first request and later: what has come counts, and the rest follows."""
    for leave in (Cut.close, Cut.reset):
        data = data_of(3 * MIB, 3)
        upload = begin(s, "/v1/arrays:upload?" + raw_query(data))
        at = 0
        for stop in (MIB, 2 * MIB + 17):
            cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": at, "Upload-Complete": "?1"}, len(data) - at, data[at:stop])
            until(lambda: probe(s, upload) == "upload_in_use", "a request appends")
            leave(cut)
            until(lambda: probe(s, upload) == "upload_offset_mismatch", "its end is seen")
            before, at = at, offset_of(s, upload)
            assert before <= at <= stop, (before, at, stop)
            assert leave is Cut.reset or at == stop, (at, stop)  # a reset drops what the server has not read yet
        status, _, made = append(s, upload, at, data[at:], last=True)
        assert status == 201 and bytes_of(s, made) == data


def named_while_it_comes(s):
    """104 responses, to clients of this version alone: where the upload is, then how far."""
    data = data_of(160 * MIB, 4)
    fields = {**RAW, "Upload-Complete": "?1", "Upload-Draft-Interop-Version": "8"}
    cut = Cut(s, "POST", "/v1/arrays:upload?" + raw_query(data), fields, len(data), data[:100 * MIB])
    told = cut.read_until(b"\r\n\r\n")
    assert told.startswith("HTTP/1.1 104 Upload Resumption Supported\r\n") and "Upload-Draft-Interop-Version: 8\r\n" in told, told
    upload = re.search(r"Location: (\S+)", told)[1]
    assert "Upload-Offset: " in cut.read_until(b"Upload-Offset")
    cut.close()
    # What it had not read when the connection was reset (there are 104 responses that nobody read) is lost.
    at = offset_of(s, upload)
    assert 64 * MIB <= at <= 100 * MIB, at
    assert ok(s.ask("GET", upload))["length"] == len(data)
    status, headers, made = append(s, upload, at, data[at:], last=True)
    assert (status, headers["Upload-Complete"]) == (201, "?1") and bytes_of(s, made) == data
    # Another version, or none: a plain upload, which is not kept when it is cut off.
    for fields in ({"Upload-Draft-Interop-Version": "3"}, {}):
        cut = Cut(s, "POST", "/v1/arrays:upload?dtype=uint8&shape=100000", {**RAW, "Upload-Complete": "?1", **fields}, 100_000, bytes(100_000))
        assert cut.read_until(b"\r\n\r\n").startswith("HTTP/1.1 201 "), cut.got
        cut.close()


def one_request_at_a_time(s):
    data = data_of(MIB, 5)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data))
    cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": 0, "Upload-Complete": "?1"}, len(data), data[:1000])
    until(lambda: probe(s, upload) == "upload_in_use", "a request appends")
    refused(append(s, upload, 0, b"x"), 409, "upload_in_use")
    # HEAD takes the first one to be lost, with what the server has not read of it, and what it says holds.
    at = offset_of(s, upload)
    assert 0 <= at <= 1000, at
    try:
        cut.socket.sendall(data[1000:])
    except OSError:
        pass  # its connection was ended
    assert offset_of(s, upload) == at
    status, _, made = append(s, upload, at, data[at:], last=True)
    assert status == 201 and bytes_of(s, made) == data
    # DELETE ends it, too.
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data))
    cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": 0, "Upload-Complete": "?1"}, len(data), data[:1000])
    until(lambda: probe(s, upload) == "upload_in_use", "a request appends")
    ok(s.ask("DELETE", upload), 204)
    refused(s.ask("GET", upload), 404, "not_found")
    cut.close()


def mistakes(s):
    data = data_of(1000, 6)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data), data[:10])
    status, headers, document = append(s, upload, 9, b"x")
    assert (status, headers["Upload-Offset"], document["code"]) == (409, "10", "upload_offset_mismatch")
    refused(s.ask("PATCH", upload, b"x", {**RAW, "Upload-Offset": "10", "Upload-Complete": "?0"}), 415, "unsupported_media_type", "application/partial-upload")
    refused(s.ask("PATCH", upload, b"x", {**PART, "Upload-Complete": "?0"}), 422, "invalid_request")
    refused(s.ask("PATCH", upload, b"x", {**PART, "Upload-Offset": "10"}), 422, "invalid_request")
    for word in ("-1", "1.5", "x", "1" * 16):
        refused(s.ask("PATCH", upload, b"x", {**PART, "Upload-Offset": word, "Upload-Complete": "?0"}), 422, "invalid_request")
    refused(append(s, upload, 10, b"x", **{"Upload-Length": "5"}), 400, "upload_length_mismatch")
    ok(append(s, upload, 10, b"", **{"Upload-Length": "1000"}), 204)
    refused(append(s, upload, 10, b"", **{"Upload-Length": "1001"}), 400, "upload_length_mismatch")
    refused(append(s, upload, 10, data, last=True), 400, "upload_length_mismatch")
    refused(append(s, upload, 10, data[10:20], last=True), 400, "upload_length_mismatch")
    refused(append(s, upload, 10, b"x", **{"Content-Encoding": "gzip"}), 415, "unsupported_media_type", "Content-Encoding")
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1", b"x", {**RAW, "Upload-Complete": "?0", "Content-Encoding": "gzip"}), 415, "unsupported_media_type")
    # More than was told, in chunks: what fits counts, the rest is refused.
    assert offset_of(s, upload) == 10
    ok(append(s, upload, 10, data[10:], last=True), 201)
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1", b"xy", {**RAW, "Upload-Complete": "?1", "Upload-Draft-Interop-Version": "8", "Upload-Length": "1"}), 400, "upload_length_mismatch")
    # What is neither ?0 nor ?1 counts as missing.
    ok(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1", b"x", {**RAW, "Upload-Complete": "yes"}), 201)
    refused(s.ask("GET", "/v1/uploads/upl_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41"), 404, "not_found")
    # The operation's own mistakes come when it runs, and end the upload.
    upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=3", b"ab")
    status, headers, document = append(s, upload, 2, b"cd", last=True)
    assert (status, headers["Upload-Complete"], document["code"]) == (400, "?1", "malformed_body"), document
    refused(append(s, upload, 4, b"", last=True), 400, "upload_completed")


def what_may_pass_leaves_the_bytes(s):
    """A name that is taken: the last request again, without a body, once it is free."""
    held = ok(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1&name=held&unique=true", b"x", RAW), 201)
    upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=4&name=other", b"ab")
    ok(append(s, upload, 2, b"cd"), 204)
    ok(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1&name=other&unique=true", b"x", RAW), 201)
    status, headers, document = append(s, upload, 4, b"", last=True)
    assert (status, headers["Upload-Complete"], document["code"]) == (409, None, "name_taken"), document
    ok(s.ask("DELETE", "/v1/arrays/by-name/other"), 204)
    made = ok(append(s, upload, 4, b"", last=True), 201)
    assert bytes_of(s, made) == b"abcd"
    ok(s.ask("DELETE", f"/v1/arrays/{held['id']}"), 204)


def digest(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


def digests(s):
    """Repr-Digest is of all, and compared at the end; Content-Digest is of one request, of which nothing counts where it differs."""
    data = data_of(5000, 7)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data), data[:100], **{"Repr-Digest": digest(data)})
    refused(append(s, upload, 100, data[100:200], **{"Content-Digest": digest(b"other")}), 400, "digest_mismatch")
    assert offset_of(s, upload) == 100
    ok(append(s, upload, 100, data[100:200], **{"Content-Digest": digest(data[100:200])}), 204)
    ok(append(s, upload, 200, data[200:], last=True), 201)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data), data[:100], **{"Repr-Digest": digest(b"other")})
    before = len(ok(s.ask("GET", "/v1/arrays?limit=1000"))["items"])
    status, headers, document = append(s, upload, 100, data[100:], last=True)
    assert (status, headers["Upload-Complete"], document["code"]) == (400, "?1", "digest_mismatch")
    assert len(ok(s.ask("GET", "/v1/arrays?limit=1000"))["items"]) == before


def what_options_say(s):
    for path in ("/v1/arrays", "/v1/arrays:upload", "/v1/arrays:import", "/v1/arrays/by-name/a/data"):
        _, headers, _ = s.ask("OPTIONS", path)
        assert headers["Accept-Patch"] == "application/partial-upload" and headers["Upload-Limit"].startswith("max-size="), path
    assert s.ask("OPTIONS", "/v1/programs")[1]["Accept-Patch"] is None


def killed_in_the_middle(s):
    """kill -9 while an upload comes, ten times: the offset is never taken back, and the bytes are the same at the end."""
    data = data_of(200 * MIB, 8)
    upload = begin(s, "/v1/arrays:upload?" + raw_query(data, name="killed"))
    at, rng, kills = 0, random.Random(9), 0
    while kills < 10:
        cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": at, "Upload-Complete": "?0"}, len(data), b"")
        sender = threading.Thread(target=send_all, args=(cut, data[at:]), daemon=True)
        sender.start()
        time.sleep(rng.uniform(0.02, 0.2))
        told = None
        if rng.random() < 0.3:
            cut.close()
            told = offset_of(s, upload)
        s.stop(signal.SIGKILL)
        kills += 1
        sender.join(30)
        s.start()
        before, at = at, offset_of(s, upload)
        assert at >= before and (told is None or at >= told), (before, told, at)
        if at == len(data):
            break
    status, _, made = append(s, upload, at, data[at:], last=True)
    assert status == 201 and made["name"] == "killed", made
    assert hashlib.sha256(bytes_of(s, made)).digest() == hashlib.sha256(data).digest()
    ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)


def send_all(cut, data):
    try:
        cut.socket.sendall(data)
    except OSError:
        pass


def killed_while_it_ends(s):
    """kill -9 around the last request: the array is made once, whatever the client saw."""
    data = data_of(20 * MIB, 10)
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        name = f"ends/{delay}"
        upload = begin(s, "/v1/arrays:upload?" + raw_query(data, name=name), data[:MIB])
        cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": MIB, "Upload-Complete": "?1"}, len(data) - MIB, b"")
        sender = threading.Thread(target=send_all, args=(cut, data[MIB:]), daemon=True)
        sender.start()
        sender.join(5)
        time.sleep(delay)
        s.stop(signal.SIGKILL)
        cut.close()
        s.start()
        document = ok(s.ask("GET", upload))
        if not document["complete"]:
            status, _, made = append(s, upload, document["offset"], data[document["offset"]:], last=True)
            assert status == 201, made
        (array,) = ok(s.ask("GET", f"/v1/arrays?name={name}"))["items"]
        assert bytes_of(s, array) == data


def memory_stays_small(s):
    """256 MiB through one upload in two requests: at most 64 MiB of memory more."""
    size, piece = 256 * MIB, data_of(8 * MIB, 11)
    # The first use of everything is not the upload's.
    warm = begin(s, "/v1/arrays:upload?dtype=uint8&shape=16", bytes(8))
    ok(append(s, warm, 8, bytes(8), last=True), 201)
    before = memory_of(s, "VmHWM")
    upload = begin(s, f"/v1/arrays:upload?dtype=uint8&shape={size}")
    for at, last in ((0, False), (size // 2, True)):
        cut = Cut(s, "PATCH", upload, {**PART, "Upload-Offset": at, "Upload-Complete": "?1" if last else "?0", "Connection": "close"}, size // 2, b"")
        for _ in range(size // 2 // len(piece)):
            cut.socket.sendall(piece)
        assert re.match(r"HTTP/1.1 20[14] ", cut.read_until(b"\r\n\r\n")), cut.got
        cut.close()
    assert memory_of(s, "VmHWM") - before < 64 * MIB, (before, memory_of(s, "VmHWM"))


def blobs(s):
    return {path for path in pathlib.Path(s.folder, "data", "blobs").rglob("*") if path.is_file()}


def nothing_is_left_behind(s):
    before = blobs(s)
    upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=9", b"ab")
    append(s, upload, 2, b"cd")
    # By name: the collector may still remove what an earlier story left.
    parts = blobs(s) - before
    assert len(parts) == 2, parts
    ok(s.ask("DELETE", upload), 204)
    until(lambda: not parts & blobs(s), "the collector removes its parts")


def time_is_up(s):
    upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=9", b"ab")
    until(lambda: s.ask("HEAD", upload)[0] == 404, "it expires")


def bounded_in_number(s):
    for _ in range(64):
        upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=9", b"ab")
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=9", b"ab", {**RAW, "Upload-Complete": "?0"}), 429, "limit_reached", "uploads")
    ok(s.ask("DELETE", upload), 204)
    upload = begin(s, "/v1/arrays:upload?dtype=uint8&shape=9", b"ab")
    refused(s.ask("POST", "/v1/arrays:upload", b"ab", {**RAW, "Upload-Complete": "?0", "Upload-Length": str(2 * MIB)}), 413, "body_too_large")
    refused(append(s, upload, 2, bytes(MIB)), 413, "body_too_large")


STORIES = [in_three_requests, every_operation_with_array_bytes, clients_that_leave, named_while_it_comes, one_request_at_a_time, mistakes,
           what_may_pass_leaves_the_bytes, digests, what_options_say, memory_stays_small, nothing_is_left_behind]
failed = run_stories(STORIES)
failed = run_stories([killed_in_the_middle, killed_while_it_ends]) or failed
failed = run_stories([time_is_up], options=("--upload-timeout", "2")) or failed
sys.exit(run_stories([bounded_in_number], options=("--quota", str(MIB))) or failed)
