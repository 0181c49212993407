#!/usr/bin/env python3
"""Resumable uploads beside plain ones: uploads_bench.py BINARY [GIB]. Each line has the time of an upload of raw bytes, when the last byte was
sent, and the server's peak of memory; data goes to the disk of SPEED_DIR (the system's folder for temporary files)."""
import os
import pathlib
import re
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd  # noqa: E402

PIECE = os.urandom(8 << 20)
RAW = {"Content-Type": "application/octet-stream"}
PART = {"Content-Type": "application/partial-upload"}


def send(s, method, path, headers, size):
    """(the response, when the last byte was sent)"""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\nContent-Length: {size}\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", s.port)) as connection:
        connection.sendall((head + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode())
        for at in range(0, size, len(PIECE)):
            connection.sendall(memoryview(PIECE)[:size - at])
        sent, answer = time.monotonic(), b""
        while more := connection.recv(65536):
            answer += more
    return answer, sent


def peak_mib(s):
    return next(int(line.split()[1]) >> 10 for line in open(f"/proc/{s.process.pid}/status") if line.startswith("VmHWM"))


def main():
    size = int(float(sys.argv[2] if len(sys.argv) > 2 else "1") * (1 << 30))
    target = f"/v1/arrays:upload?dtype=uint8&shape={size}"
    with Meshd(sys.argv[1], "--devices", "8", "--quota", str(16 << 30), data=tempfile.mkdtemp(dir=os.environ.get("SPEED_DIR"))) as s:
        s.owns_folder = True
        for kind in ("plain", "resumable", "plain", "resumable", "resumed"):
            began, at = time.monotonic(), 0
            if kind == "plain":
                answer, sent = send(s, "POST", target, RAW, size)
            else:
                upload = s.ask("POST", target, b"", {**RAW, "Upload-Complete": "?0"})[1]["Location"]
                if kind == "resumed":
                    at = size // 2
                    send(s, "PATCH", upload, {**PART, "Upload-Offset": 0, "Upload-Complete": "?0"}, at)
                answer, sent = send(s, "PATCH", upload, {**PART, "Upload-Offset": at, "Upload-Complete": "?1"}, size - at)
            seconds = time.monotonic() - began
            assert answer.startswith(b"HTTP/1.1 201 "), answer[:500]
            print(f"{kind:9} {seconds:6.2f} s, {size / seconds / 1e9:.2f} GB/s, sent after {sent - began:.2f} s, peak {peak_mib(s)} MiB", flush=True)
            s.ask("DELETE", "/v1/arrays/" + re.search(rb'"id":"(arr_[^"]+)"', answer)[1].decode())
            time.sleep(11)  # the collector removes the files


if __name__ == "__main__":
    main()
