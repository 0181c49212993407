#!/usr/bin/env python3
"""Files are recognised by their first bytes wherever one is taken: bodies, parts of forms, imports, programs. A type that names
another kind is refused, and the answer names both."""
import gzip
import pathlib
import pickle

import numpy as np

from file_formats import RAW, chunked, ok, refused, run_tests, write_npy, write_npz, write_safetensors

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NPY, NPZ, TENSORS = write_npy(X), write_npz({"x": X}), write_safetensors({"x": ("F32", (2, 3), X.tobytes())})
UNTYPED = ({"Content-Type": "application/octet-stream"}, {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": ""})
PROGRAM = "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> { %0 = stablehlo.add %a, %a : tensor<2x3xf32> return %0 : tensor<2x3xf32> }"
BYTECODE = (pathlib.Path(__file__).resolve().parents[1] / "artifacts").rglob("*.mlirbc")


def holds(s, array):
    assert ok(s.ask("GET", f"/v1/arrays/{array['id']}/data")) == X.tobytes()


def test_arrays(s):
    for headers in UNTYPED:
        holds(s, ok(s.ask("POST", "/v1/arrays", NPY, headers), 201))
        holds(s, ok(chunked(s, "POST", "/v1/arrays", [NPY[:3], NPY[3:]], headers), 201))
        holds(s, ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=2,3", X.tobytes(), headers), 201))
        for file in (NPZ, TENSORS):
            for path in ("/v1/arrays", "/v1/arrays:import"):
                (made,) = ok(s.ask("POST", path, file, headers), 201)["items"]
                assert made["name"] == "x"
                holds(s, made)
        made = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=2,3", bytes(24), headers), 201)
        ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data", NPY, headers))
        holds(s, made)
        ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data?slice=0", write_npy(X[:1] * 0), headers))
        refused(s.ask("PUT", f"/v1/arrays/{made['id']}/data", NPZ, headers), 415, "unsupported_media_type", "a ZIP file (.npz)", "import")


def test_raw_bytes_may_begin_as_any_file(s):
    """Their number says that they are raw."""
    for file in (NPY, NPZ, TENSORS):
        made = ok(s.ask("POST", f"/v1/arrays?dtype=uint8&shape={len(file)}", file, RAW), 201)
        assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == file
        ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data", file, RAW))
    ok(chunked(s, "POST", f"/v1/arrays?dtype=uint8&shape={len(NPY)}", [NPY], RAW), 201)


def test_types_that_name_another_kind(s):
    kinds = {"application/x-npy": (NPY, "a .npy file"), "application/zip": (NPZ, "a ZIP file (.npz)"),
             "application/x-safetensors": (TENSORS, "a safetensors file")}
    for media, (_, name) in kinds.items():
        for other, (file, other_name) in kinds.items():
            if media == other:
                continue
            for path in ("/v1/arrays", "/v1/arrays:import"):
                refused(s.ask("POST", path, file, {"Content-Type": media}), 400, "malformed_body", name, other_name)
    refused(s.ask("POST", "/v1/arrays:import?format=npz", TENSORS, RAW), 400, "malformed_body", "a safetensors file")
    refused(s.ask("POST", "/v1/arrays:import", NPY, RAW), 415, "unsupported_media_type", "a .npy file")


def test_kinds_that_nothing_reads(s):
    for file, name in ((pickle.dumps({"a": [1]}), "a Python pickle"), (gzip.compress(NPY), "gzip data"),
                       (b"\x89HDF\r\n\x1a\n" + bytes(8), "an HDF5 file"), (b"\x28\xb5\x2f\xfd" + bytes(12), "zstd data")):
        for path in ("/v1/arrays", "/v1/arrays:import"):
            refused(s.ask("POST", path, file, RAW), 422, "unsupported_format", name)
    refused(s.ask("POST", "/v1/arrays", b"ML\xefR" + bytes(12), RAW), 415, "unsupported_media_type", "/v1/programs")
    refused(s.ask("POST", "/v1/arrays", b"something", RAW), 422, "invalid_query", "/dtype", "/shape")


def form(file, name="file", filename="", media=""):
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
    return (head + (f"\r\nContent-Type: {media}" if media else "") + "\r\n\r\n").encode() + file + b"\r\n"


def sent(*parts):
    return b"".join(parts) + b"--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"}


def test_forms(s):
    for media in ("", "application/octet-stream"):
        holds(s, ok(s.ask("POST", "/v1/arrays", *sent(form(NPY, media=media))), 201))
        for file in (NPZ, TENSORS):
            (made,) = ok(s.ask("POST", "/v1/arrays:import", *sent(form(file, filename="w", media=media))), 201)["items"]
            holds(s, made)
    refused(s.ask("POST", "/v1/arrays", *sent(form(NPY, media="application/zip"))), 400, "malformed_body", "a .npy file")
    refused(s.ask("POST", "/v1/arrays:import", *sent(form(NPZ, name="x"))), 400, "malformed_body", "file")
    refused(s.ask("POST", "/v1/arrays:upload", *sent(form(NPZ))), 415, "unsupported_media_type", "a ZIP file (.npz)", "/v1/arrays:import")
    refused(s.ask("POST", "/v1/arrays", *sent(form(b"[1]", media="application/json"))), 415, "unsupported_media_type", "the file is JSON; send a .npy file")
    request = form(b'{"program": {"part": "f"}, "arguments": [{"part": "x"}], "results": {"encoding": "json"}}', "request", media="application/json")
    for file in (NPY, NPZ, TENSORS, X.tobytes()):
        answer = ok(s.ask("POST", "/v1/run", *sent(request, form(file, "x"), form(PROGRAM.encode(), "f"))))
        assert answer["results"][0]["data"] == (X + X).tolist()
    twice = write_npz({"x": X})
    refused(s.ask("POST", "/v1/run", *sent(request, form(twice, "x", media="application/x-npy"), form(PROGRAM.encode(), "f"))), 422, "/arguments/0/part",
            "a ZIP file (.npz)")


def test_programs(s):
    for headers in ({"Content-Type": "application/octet-stream"}, {"Content-Type": ""}):
        first = ok(s.ask("POST", "/v1/programs", PROGRAM.encode(), headers), 201 if headers["Content-Type"] else 200)
        assert first["arguments"][0]["shape"] == [2, 3]
    bytecode = next(BYTECODE, None)
    data = bytecode.read_bytes() if bytecode else b"ML\xefR" + bytes(12)
    refused(s.ask("POST", "/v1/programs", data, {"Content-Type": "application/json"}), 400, "malformed_body", "MLIR bytecode")
    refused(s.ask("POST", "/v1/programs", data, {"Content-Type": "text/plain"}), 400, "malformed_body", "MLIR bytecode")
    if bytecode:
        assert s.ask("POST", "/v1/programs", data, {"Content-Type": ""})[0] in (200, 201)


if __name__ == "__main__":
    run_tests(globals())
