"""Large durable arrays go through memory in pieces, whatever is done with them: large_arrays_test.py BINARY. For each operation a server of its
own, so that its peak of resident memory tells; 256 MiB, LONG=1: 1 GiB. Bits are compared with NumPy's where it is there, else with a pattern's.
"""
import hashlib
import http.client
import json
import os
import sys
import time

from server import Meshd, memory_of, ok

BINARY = sys.argv[1]
MIB = 1 << 20
TOTAL = (1024 if os.environ.get("LONG") else 256) * MIB
MOST = 64 * MIB
ROWS = TOTAL // (4 * 4096)  # of 4,096 numbers of four bytes
RAW = {"Content-Type": "application/octet-stream"}


def row(i):
    """Row i of the array: 16 KiB that tell which row it is."""
    return i.to_bytes(4, "little") * 2048 + (i * 7919 % 2**32).to_bytes(4, "little") * 2048


def send(server, method, path, pieces, length, headers=None):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    try:
        client.request(method, path, pieces, {**RAW, "Content-Length": str(length), **(headers or {})})
        answer = client.getresponse()
        document = json.loads(answer.read())
        assert answer.status in (200, 201), document
        return document
    finally:
        client.close()


def joined(count, make):
    """make(0), make(1), ... in pieces of about a MiB."""
    for at in range(0, count, 64):
        yield b"".join(make(i) for i in range(at, min(at + 64, count)))


def digest_of(server, path):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        assert answer.status == 200, answer.read()
        seen = hashlib.sha256()
        while piece := answer.read(MIB):
            seen.update(piece)
        return seen.hexdigest()
    finally:
        client.close()


def digest(pieces):
    seen = hashlib.sha256()
    for piece in pieces:
        seen.update(piece)
    return seen.hexdigest()


def mesh(server, *sizes):
    names = ["x", "y"][:len(sizes)]
    count = 1
    for size in sizes:
        count *= size
    return ok(server.ask("POST", "/v1/meshes", {"axis_names": names, "devices": list(range(count)), "shape": list(sizes)}), 201)["id"]


def stored(server, spec="x,"):
    """The array, its rows over four devices."""
    return send(server, "POST", f"/v1/arrays?dtype=uint32&shape={ROWS},4096&mesh={mesh(server, 4)}&spec={spec}", joined(ROWS, row), TOTAL)["id"]


def put_a_slice(server, array):
    half = ROWS // 2
    send(server, "PUT", f"/v1/arrays/{array}/data?slice={half // 2}:{half // 2 + half}", joined(half, lambda i: row(i + 5)), half * 16384)
    # Columns of rows, with steps.
    few = b"".join(bytes([i % 251] * 4) * 1024 for i in range(ROWS // 2))
    send(server, "PUT", f"/v1/arrays/{array}/data?slice=::2,1024:2048", (few[at:at + MIB] for at in range(0, len(few), MIB)), len(few))

    def expected(i):
        old = row(i - half // 2 + 5) if half // 2 <= i < half // 2 + half else row(i)
        return old if i % 2 else old[:4096] + bytes([i // 2 % 251] * 4) * 1024 + old[8192:]

    assert digest_of(server, f"/v1/arrays/{array}/data") == digest(joined(ROWS, expected))


def reshard(server, array):
    made = ok(server.ask("POST", f"/v1/arrays/{array}:reshard", {"mesh": mesh(server, 2, 4), "spec": [["y"], ["x"]]}), 201)["id"]
    assert digest_of(server, f"/v1/arrays/{made}/data") == digest(joined(ROWS, row))


def move(server, array):
    made = ok(server.ask("POST", f"/v1/arrays/{array}:move"), 201)["id"]
    assert digest_of(server, f"/v1/arrays/{made}/data") == digest(joined(ROWS, row))


def fortran_order(server, _):
    head = "{'descr': '<u4', 'fortran_order': True, 'shape': (4096, %d), }" % ROWS
    head += " " * (64 - (10 + len(head) + 1) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()

    def pieces():
        yield head
        yield from joined(ROWS, row)  # as columns

    made = send(server, "POST", f"/v1/arrays?mesh={mesh(server, 4)}&spec=x,", pieces(), len(head) + TOTAL, {"Content-Type": "application/x-npy"})
    assert made["shape"] == [4096, ROWS]
    # Each column is a row of ours: of four numbers in a row the first half has i, the second the other number.
    first = b"".join(i.to_bytes(4, "little") for i in range(ROWS))
    second = b"".join((i * 7919 % 2**32).to_bytes(4, "little") for i in range(ROWS))
    assert digest_of(server, f"/v1/arrays/{made['id']}/data") == digest([first] * 2048 + [second] * 2048)


def padded_chunks(server, _):
    rows = ROWS - 3  # over four devices: the last shard has three rows of padding
    made = send(server, "POST", f"/v1/arrays?dtype=uint32&shape={rows},4096&mesh={mesh(server, 2)}&spec=x,", joined(rows, row), rows * 16384)["id"]
    half = -(-rows // 2)
    chunk = f"/v1/arrays/{made}/v1/zarr/c/1/0"
    expected = digest(joined(half, lambda i: row(half + i) if half + i < rows else bytes(16384)))
    assert digest_of(server, chunk) == expected, server.ask("GET", chunk, None, {"Range": "bytes=0-10"})
    tail = server.ask("GET", chunk, None, {"Range": f"bytes={(rows - half) * 16384 - 4}-{(rows - half) * 16384 + 3}"})
    assert (tail[0], tail[2]) == (206, row(rows - 1)[-4:] + bytes(4)), tail


def main():
    failed = 0
    for operation, needs in ((put_a_slice, True), (reshard, True), (move, True), (fortran_order, False), (padded_chunks, False)):
        with Meshd(BINARY) as server:
            array = stored(server) if needs else None
            if not needs:  # the first use of everything is not the operation's
                send(server, "POST", "/v1/arrays?dtype=uint8&shape=8388608", (bytes(MIB) for _ in range(8)), 8 * MIB)
            before, began = memory_of(server, "VmHWM"), time.monotonic()
            operation(server, array)
            more = memory_of(server, "VmHWM") - before
            print(f"{operation.__name__}: {TOTAL // MIB} MiB in {time.monotonic() - began:.1f} s, {more / MIB:.0f} MiB of memory more", flush=True)
            if more > MOST:
                print(f"{operation.__name__} takes more than {MOST // MIB} MiB")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
