"""Durable arrays pass through the server in pieces: a large upload, sized or chunked, whole, sharded or as .npy, and a download leave its
memory as it was; what comes back is what was sent. 256 MiB; 4 GiB with LONG=1."""
import base64
import hashlib
import http.client
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import zipfile

import numpy

from server import Meshd, ok, until

MIB = 1 << 20
SIZE = (4096 if os.environ.get("LONG") else 256) * MIB
COLUMNS = 4096
ROWS = SIZE // 4 // COLUMNS
ALLOWED = 64 * MIB
PIECE = MIB
NOISE = os.urandom(3 * MIB + 4)  # no multiple of a page, a row or a piece


def body(start=b""):
    """The bytes of the array behind `start`, a piece at a time."""
    if start:
        yield start
    for at in range(0, SIZE, PIECE):
        begin = at % (len(NOISE) - PIECE)
        yield NOISE[begin:begin + PIECE]


LAST = NOISE[(SIZE - PIECE) % (len(NOISE) - PIECE):][PIECE - 1000:PIECE]


def digest_of(pieces):
    seen = hashlib.sha256()
    for piece in pieces:
        seen.update(piece)
    return seen.hexdigest()


def memory_of(server):
    """What the kernel cannot take back: RssAnon + RssShmem, in bytes."""
    lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


class Growth:
    """The most that the server's memory is above where it began, looked at between pieces."""

    def __init__(self, server):
        self.server, self.before, self.most = server, memory_of(server), 0

    def look(self):
        self.most = max(self.most, memory_of(self.server) - self.before)

    def watch(self, pieces):
        for i, piece in enumerate(pieces):
            if i % 16 == 0:
                self.look()
            yield piece

    def check(self, what, seconds):
        self.look()
        print(f"{what}: {SIZE / seconds / 1e6:.0f} MB/s, memory grows by {self.most / MIB:.1f} MiB")
        assert self.most <= ALLOWED, f"{what}: memory grows by {self.most // MIB} MiB"


def upload(server, what, target, head=b"", sized=False, media="application/octet-stream", method="POST", status=201):
    growth = Growth(server)
    headers = {"Content-Type": media}
    if sized:
        headers["Content-Length"] = str(SIZE + len(head))
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    begin = time.monotonic()
    client.request(method, target, growth.watch(body(head)), headers, encode_chunked=not sized)
    answer = client.getresponse()
    text = answer.read()
    assert answer.status == status, text
    growth.check(what, time.monotonic() - begin)
    client.close()
    return text


def verify(server, what, array, expected):
    """What is stored is what was sent; reading it leaves the server's memory as it was."""
    growth, begin = Growth(server), time.monotonic()
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    client.request("GET", f"/v1/arrays/{array}/data", headers={"Accept": "application/octet-stream"})
    answer = client.getresponse()
    assert answer.status == 200, answer.read()
    assert digest_of(growth.watch(iter(lambda: answer.read(PIECE), b""))) == expected, what
    growth.check(what + ", read", time.monotonic() - begin)
    # Its last bytes by range, with the digest of everything; the same as a slice.
    status, headers, tail = server.ask("GET", f"/v1/arrays/{array}/data", headers={
        "Accept": "application/octet-stream", "Range": "bytes=-1000", "Want-Repr-Digest": "sha-256=1"})
    assert (status, headers["Content-Range"]) == (206, f"bytes {SIZE - 1000}-{SIZE - 1}/{SIZE}"), (status, headers)
    assert headers["Repr-Digest"] == "sha-256=:" + base64.b64encode(bytes.fromhex(expected)).decode() + ":", headers["Repr-Digest"]
    assert tail == LAST, what
    shape = ok(server.ask("GET", f"/v1/arrays/{array}"))["shape"]
    assert server.ask("GET", f"/v1/arrays/{array}/data?slice=-1:,-8:")[2] == tail[-8 * SIZE // (shape[0] * shape[1]):], what
    growth.check(what + ", parts", time.monotonic() - begin)
    client.close()


def exported(server, array, expected):
    """The array twice in one archive, whose checksums are those of the bytes."""
    growth, begin = Growth(server), time.monotonic()
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    client.request("GET", f"/v1/arrays:export?id={array}&id={array}&as=one&as=two&format=npz")
    answer = client.getresponse()
    assert answer.status == 200, answer.read()
    with tempfile.TemporaryFile() as file:
        for piece in growth.watch(iter(lambda: answer.read(PIECE), b"")):
            file.write(piece)
        growth.check("archive", (time.monotonic() - begin) / 2)
        with zipfile.ZipFile(file) as archive:
            assert archive.namelist() == ["one.npy", "two.npy"]
            with archive.open("two.npy") as member:
                numpy.lib.format.read_magic(member)
                numpy.lib.format.read_array_header_1_0(member)
                assert digest_of(iter(lambda: member.read(PIECE), b"")) == expected
    client.close()


def files_of(server):
    return [path for path in pathlib.Path(server.folder, "data", "blobs").rglob("*") if path.is_file()]


def disconnected(server, target):
    """A client that leaves in the middle leaves no file behind."""
    before = set(files_of(server))  # some of arrays that were deleted, which go meanwhile
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    client.putrequest("POST", target)
    client.putheader("Content-Type", "application/octet-stream")
    client.putheader("Content-Length", str(SIZE))
    client.endheaders()
    pieces = body()
    for _ in range(32):
        client.send(next(pieces))
    until(lambda: not before.issuperset(files_of(server)), "the array is being written")
    client.close()
    until(lambda: before.issuperset(files_of(server)), "the unfinished blobs are gone")


def main():
    with Meshd(sys.argv[1], "--devices", "8") as server:
        expected = digest_of(body())
        mesh = ok(server.ask("POST", "/v1/meshes", {"axis_names": ["x"], "shape": [8], "devices": list(range(8))}), 201)["id"]
        ok(server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [4], "data": [1, 2, 3, 4]}), 201)  # what a first array costs once
        raw = f"/v1/arrays?dtype=float32&shape={ROWS},{COLUMNS}"
        uneven = f"/v1/arrays?dtype=uint8&shape=2,{SIZE // 2}&mesh={mesh}"
        head = io.BytesIO()
        numpy.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (ROWS, COLUMNS)})
        for what, target, more in (
                ("sized", raw, {"sized": True}),
                ("chunked", raw, {}),
                ("sized, columns over 8", raw + f"&mesh={mesh}&spec=,x", {"sized": True}),
                ("chunked, 2 rows over 8", uneven + "&spec=x,", {}),
                (".npy, rows over 8", f"/v1/arrays?mesh={mesh}&spec=x,", {"head": head.getvalue(), "media": "application/x-npy"})):
            array = json.loads(upload(server, what, target, **more))["id"]
            if what == "chunked":
                upload(server, "new data", f"/v1/arrays/{array}/data", method="PUT", status=200)
            server.stop()
            server.start()  # what is answered is on the disk; and the next upload begins with a server that has done nothing
            verify(server, what, array, expected)
            if what == "sized, columns over 8" and not os.environ.get("LONG"):
                exported(server, array, expected)
            assert server.ask("DELETE", f"/v1/arrays/{array}")[0] == 204
        disconnected(server, raw)
    return 0


sys.exit(main())
