#!/usr/bin/env python3
"""traversal_test.py BINARY: ways out of a folder in every place of a request that has a name or a path: each is answered with a problem of 4xx, or as a
name like others, and never with what a file outside of the data folder has. Beside that folder nothing is made, changed or removed, and in it there
is nothing but what storage/README.md says."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import re
import struct
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, ok  # noqa: E402

SECRET = "the canary sings beside the data"
ADMIN = {"Authorization": "Bearer of-an-operator-1234567890"}  # makes backups
OF_DATA = re.compile(r"lock|reserve|meshd\.db(-wal|-shm)?|blobs/[0-9a-f]+(/[^/]+)?|blobs/tmp(/[^/]+)?|blobs|warmup(/[^/]+)?|backups(/[^/]+(/.*)?)?")


def ways_out(folder):
    """As they stand in a target: what is to be coded is."""
    plain = ["../canary", "../../canary", "a/../../canary", "a/b/../../../canary", "./../canary", "../data/../canary", "../" * 12 + "etc/passwd",
             "../" * 300 + "etc/passwd", f"{folder}/canary", f"/{folder}/canary", "/etc/passwd", f"file://{folder}/canary", "~/canary",
             "..\\canary", "..\\..\\canary", "C:\\canary", "....//canary", "..;/canary", "../canary\0", "../canary\0.json", ".../canary", "../canary/",
             "\uff0e\uff0e/canary", "\u2025/canary", "..\u2215canary", "..", ".", "../", "...", "..../", "a/..", "a/.", ".ssh", "meshd.db", "../data/meshd.db",
             "blobs/tmp", "-rf", "$HOME/canary", "`id`", "|cat canary", "con", "../canary?x=1", "../canary#x", " ../canary", "..\n/canary", "..\r\n/canary"]
    out = [urllib.parse.quote(way, safe="/.~;") for way in plain]
    out += [urllib.parse.quote(way, safe="") for way in plain if "/" in way]
    out += [urllib.parse.quote(way, safe="").replace(".", "%2e") for way in plain[:9]]
    out += [urllib.parse.quote(urllib.parse.quote(way, safe="").replace(".", "%2e"), safe="") for way in plain[:9]]
    # Longer forms of '.' and '/' than UTF-8 has, and escapes that are none.
    out += ["..%c0%afcanary", "%c0%ae%c0%ae/canary", "%e0%80%ae%e0%80%ae/canary", "..%u2215canary", "%uff0e%uff0e/canary", "..%/canary", "..%2/canary", "..%fe%ff/canary"]
    return list(dict.fromkeys(out))


def tensors_named(name):
    head = json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    return struct.pack("<Q", len(head)) + head + b"x"


def requests(server, ways):
    """(method, target, body, headers) for each way at each place that has a name or a path."""
    array = ok(server.ask("POST", "/v1/arrays?name=plain", {"dtype": "int32", "shape": [2], "data": [1, 2]}, ADMIN), 201)["id"]
    session = ok(server.ask("POST", "/v1/sessions", {}, ADMIN), 201)["id"]
    zarr = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()
    as_json, as_bytes = {"Content-Type": "application/json"}, {"Content-Type": "application/octet-stream"}
    for way in ways:
        name = urllib.parse.unquote(way, errors="replace")
        in_query = way.replace("#", "%23").replace("&", "%26")
        yield "POST", f"/v1/admin/backup?name={in_query}", b"", {}
        for base in ("/v1/zarr/v3/", "/v1/zarr/v2/", f"/v1/arrays/{array}/zarr/", f"/v1/arrays/{array}/v1/zarr/", "/docs/guides/", "/docs/assets/", "/v1/arrays/by-name/",
                     "/v1/arrays/", "/v1/meshes/", "/v1/programs/", "/v1/uploads/", "/v1/jobs/", "/v2/models/", "/v2/systemsharedmemory/", "/"):
            yield "GET", base + way, b"", {}
        yield "PUT", f"/v1/zarr/v3/{way}/zarr.json", zarr, as_json
        yield "PUT", f"/v1/zarr/v2/{way}/.zgroup", b'{"zarr_format": 2}', as_json
        yield "PUT", f"/v1/zarr/v3/plain/{way}", b"x", as_bytes
        yield "DELETE", f"/v1/zarr/v3/{way}", b"", {}
        yield "PUT", f"/v1/models/{way}", b'{"program": {"text": "x"}}', as_json
        yield "PUT", f"/v1/jobs/{way}", b'{"program": {"text": "x"}}', as_json
        yield "POST", f"/v1/arrays?name={in_query}&dtype=uint8&shape=1", b"x", as_bytes
        yield "POST", f"/v1/arrays:import?format=safetensors&prefix={in_query}", tensors_named("a"), as_bytes
        yield "POST", "/v1/arrays:import?format=safetensors", tensors_named(name), as_bytes
        yield "POST", "/v1/meshes", json.dumps({"axis_names": [name], "devices": [0]}).encode(), as_json
        yield "POST", f"/v1/programs?name={in_query}", b"func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}", {"Content-Type": "text/plain"}
        yield "POST", f"/v1/sessions/{session}/infeed", json.dumps({"queue": name, "values": [1]}).encode(), as_json
        yield "GET", f"/v1/sessions/{session}/outfeed?queue={in_query}&after=0", b"", {}
        yield "GET", f"/v1/arrays:export?prefix={in_query}", b"", {}


def answer_to(server, method, target, body, headers):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        client.putrequest(method, target, skip_accept_encoding=True)
        for header, value in {**ADMIN, **headers, "Content-Length": str(len(body))}.items():
            client.putheader(header, value)
        client.endheaders(body)
        answer = client.getresponse()
        return answer.status, answer.getheader("Content-Type") or "", answer.read()
    finally:
        client.close()


def judge(status, kind, body, private):
    """What is wrong with an answer, or nothing."""
    if any(text in body for text in private):
        return "it has what a file outside has"
    if status >= 500:
        return f"answered with {status}"
    if status >= 400 and (kind != "application/problem+json" or json.loads(body)["status"] != status):
        return f"{status} is no problem document"
    return None


def files_of(folder, without):
    """Every path below, with what it is and what it has."""
    found = {}
    for at, folders, files in os.walk(folder):
        at = pathlib.Path(at)
        if at == without:
            folders.clear()
            continue
        for name in folders + files:
            path = at / name
            if path == without:
                continue
            found[str(path)] = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="meshd-traversal-") as outside:
        folder = pathlib.Path(outside).resolve()
        for place in ("canary", "zarr.json", ".zgroup", "etc/passwd", "work/canary", "canary.json", "a/canary"):
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_text(SECRET)
        (folder / "tokens").write_text(f"ann {ADMIN['Authorization'].split()[1]} admin\n")
        (folder / "tokens").chmod(0o600)
        private = [SECRET.encode(), base64.b64encode(SECRET.encode()), pathlib.Path("/etc/passwd").read_bytes().splitlines()[0], b"SQLite format 3"]
        before, wrong, tried, taken = files_of(folder, folder / "data"), [], 0, 0
        ways = ways_out(folder)
        # It works in a folder that paths without a root would lead to.
        with Meshd(pathlib.Path(sys.argv[1]).resolve(), "--tokens", str(folder / "tokens"), "--log-level", "err", data=str(folder), launcher=["env", "-C", str(folder / "work")]) as server:
            ok(server.ask("POST", "/v1/admin/backup?name=plain", headers=ADMIN), 201)
            for method, target, body, headers in requests(server, ways):
                tried += 1
                status, kind, answer = answer_to(server, method, target, body, headers)
                taken += status < 400
                found = judge(status, kind, answer, private)
                if found:
                    wrong.append(f"{method} {target[:150]}: {found}: {answer[:150]}")
            ok(server.ask("GET", "/livez"))
        after = files_of(folder, folder / "data")
        wrong += [f"{path} beside the data folder is another one" for path in sorted(before.keys() ^ after.keys() | {p for p in before if before[p] != after.get(p)})]
        inside = sorted(str(path.relative_to(folder / "data")) for path in (folder / "data").rglob("*"))
        wrong += [f"{path} is in the data folder" for path in inside if not OF_DATA.fullmatch(path)]
    print(f"{len(ways)} ways, {tried} requests, {taken} taken as names like others, {len(wrong)} wrong", *wrong[:20], sep="\n  ")
    return 1 if wrong or len(ways) < 100 or tried < 200 or not taken else 0


sys.exit(main())
