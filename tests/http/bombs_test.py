#!/usr/bin/env python3
"""bombs_test.py BINARY [NAME...]: requests of at most a megabyte that unfold, nest or lie about their sizes. Each is refused, and costs the server at
most a second of processor time and 64 MiB beside what it had; both are counted by the kernel and do not depend on what else the machine does. A
sanitizer's costs are its own: then only the answers are judged."""
import base64
import gzip
import http.client
import io
import json
import os
import pathlib
import struct
import sys
import zipfile
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, memory_of, ok  # noqa: E402

MIB = 1 << 20
MOST_SENT, MOST_MEMORY, MOST_SECONDS = MIB + 4096, 80 * MIB, 1.0  # 64 MiB, and what an allocator adds
JSON, BYTES, NPY, NPZ, TENSORS = ({"Content-Type": kind} for kind in (
    "application/json", "application/octet-stream", "application/x-npy", "application/zip", "application/x-safetensors"))
HAS_SANITIZER = "HAS_SANITIZER" in os.environ


def packed(data, times=1):
    for _ in range(times):
        data = gzip.compress(data, 9)
    return data


def packed_of(byte, size):
    """That many of one byte in gzip."""
    compress = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(compress.compress(byte * MIB) for _ in range(size // MIB)) + compress.flush()


def zstd_zeros(size, window=b"\x50"):
    """A frame of blocks that repeat one byte, 128 KiB each, in four bytes."""
    block = 128 << 10
    out = b"\x28\xb5\x2f\xfd\x00" + window
    for at in range(0, size, block):
        out += (int(at + block >= size) | 1 << 1 | block << 3).to_bytes(3, "little") + b"\0"
    return out


def npy_head(text, version=1):
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


def npy_with_shape(shape):
    return npy_head(b"{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + b", }\n", 2)


def zip_of(members, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


def lying(file):
    """The zip file with 2^32 - 2 as the size that the first member unfolds to."""
    return file[:22] + struct.pack("<I", 0xFFFFFFFE) + file[26:]


def npy_of(size):
    file = io.BytesIO()
    np.save(file, np.zeros(size, np.uint8))
    return file.getvalue()


def tensors_head(head, length=None):
    return struct.pack("<Q", len(head) if length is None else length) + head


def program(text):
    return json.dumps({"text": text}).encode()


def run_of(text, *arguments):
    return json.dumps({"program": {"text": text}, "arguments": arguments}).encode()


def numpy_run(text, *arguments):
    return json.dumps({"program": {"format": "numpy", "text": text}, "arguments": arguments}).encode()


def function(body, result="f32"):
    return f"func.func @main(%a: tensor<f32>) -> tensor<{result}> {{\n{body}\n}}"


def broadcast(shape):
    return function(f"  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<{shape}xf32>\n  return %0 : tensor<{shape}xf32>", shape + "xf32")


def doubling_calls(levels):
    lines = [f"func.func private @f{i}(%a: tensor<f32>) -> tensor<f32> {{\n  %0 = call @f{i + 1}(%a) : (tensor<f32>) -> tensor<f32>\n"
             f"  %1 = call @f{i + 1}(%0) : (tensor<f32>) -> tensor<f32>\n  return %1 : tensor<f32>\n}}" for i in range(levels)]
    last = f"func.func private @f{levels}(%a: tensor<f32>) -> tensor<f32> {{\n  %0 = stablehlo.sine %a : tensor<f32>\n  return %0 : tensor<f32>\n}}"
    return function("  %0 = call @f0(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>") + "\n" + "\n".join(lines) + "\n" + last


def widening_types(levels, width):
    """Aliases that each name the one before many times."""
    lines = ["!t0 = tuple<tensor<f32>>"] + [f"!t{i} = tuple<{', '.join([f'!t{i - 1}'] * width)}>" for i in range(1, levels)]
    return "\n".join(lines) + f"\nfunc.func @main(%a: !t{levels - 1}) -> !t{levels - 1} {{\n  return %a : !t{levels - 1}\n}}"


def widening_attributes(levels, width):
    lines = ["#a0 = [1, 2]"] + [f"#a{i} = [{', '.join([f'#a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n" + function(f"  %0 = stablehlo.sine %a {{x = #a{levels - 1}}} : tensor<f32>\n  return %0 : tensor<f32>")


def nested_regions(depth):
    opened = "".join('  %0 = "stablehlo.optimization_barrier"(%a) ({\n' for _ in range(depth))
    return function(opened)


def varint(value):
    """MLIR's: the number of zero bits before the first one says how many bytes follow."""
    for size in range(1, 9):
        if value < 1 << 7 * size:
            return ((value << size) | 1 << (size - 1)).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


def bytecode(*sections):
    """Bytecode of version 6 by one producer, with sections (id, bytes, length that they claim)."""
    out = b"ML\xefR" + varint(6) + b"StableHLO_v1.0.0\0"
    for number, data, *length in sections:
        out += bytes([number]) + varint(length[0] if length else len(data)) + data
    return out


def zarr_document(**other):
    return json.dumps({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
                       "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
                       "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}], **other}).encode()


MOST = b"9" * (MIB - 100)
DIMS = b",".join([b"1"] * 300_000)

# Name, path, body, headers; PUT for Zarr's, else POST.
BOMBS = [
    ("json: lists in lists", "/v1/run", b"[" * MIB, JSON),
    ("json: objects in objects", "/v1/run", b'{"a":' * 200_000, JSON),
    ("json: arguments in lists in lists", "/v1/run", b'{"program": {"text": "x"}, "arguments": [' + b"[" * 500_000 + b"]" * 500_000 + b"]}", JSON),
    ("json: a number of a million digits", "/v1/run", b"[" + MOST + b"]", JSON),
    ("json: a fraction of a million digits", "/v1/run", b"[0." + MOST + b"e-99999999999999999999]", JSON),
    ("json: names of an object", "/v1/meshes", b"{" + b",".join(b'"%d":1' % i for i in range(90_000)) + b"}", JSON),
    ("json: one name again and again", "/v1/meshes", b"{" + b",".join([b'"a":1'] * 170_000) + b"}", JSON),
    ("json: empty lists", "/v1/run", b'{"program": {"text": "x"}, "arguments": [' + b"[]," * 300_000 + b"[]]}", JSON),
    ("json: escapes", "/v1/run", b'{"' + b"\\ud83d\\ude00" * 80_000 + b'": 1}', JSON),
    ("json: a shape of many dims", "/v1/arrays", b'{"dtype": "uint8", "shape": [' + DIMS + b'], "data": [1]}', JSON),
    ("json: a shape whose product overflows", "/v1/arrays", b'{"dtype": "float64", "shape": [4294967296, 4294967296, 16], "data": []}', JSON),
    ("json: a mesh of many axes", "/v1/meshes", b'{"axis_names": [' + b",".join(b'"a%d"' % i for i in range(60_000)) + b'], "shape": [' + b",".join([b"1"] * 60_000) + b"]}", JSON),
    ("gzip: blanks before a document", "/v1/run", packed_of(b" ", 128 * MIB), {**JSON, "Content-Encoding": "gzip"}),
    ("gzip: zeros as an array", "/v1/arrays?dtype=uint8&shape=134217728", packed_of(b"\0", 128 * MIB), {**BYTES, "Content-Encoding": "gzip"}),
    ("gzip: empty lists", "/v1/run", packed(b'{"program": {"text": "x"}, "arguments": [' + b"[]," * 10_000_000 + b"[]]}"), {**JSON, "Content-Encoding": "gzip"}),
    ("gzip in gzip", "/v1/run", packed(packed_of(b"\0", 128 * MIB)), {**JSON, "Content-Encoding": "gzip, gzip"}),
    ("ten times gzip", "/v1/run", packed(bytes(MIB), 10), {**JSON, "Content-Encoding": ", ".join(["gzip"] * 10)}),
    ("gzip: many empty members", "/v1/run", gzip.compress(b"") * 50_000, {**JSON, "Content-Encoding": "gzip"}),
    ("gzip: a name of a megabyte", "/v1/run", b"\x1f\x8b\x08\x08\0\0\0\0\0\3" + b"a" * (MIB - 100), {**JSON, "Content-Encoding": "gzip"}),
    ("deflate: zeros", "/v1/run", zlib.compress(bytes(128 * MIB), 9), {**JSON, "Content-Encoding": "deflate"}),
    ("zstd: one byte, eight gigabytes", "/v1/run", zstd_zeros(8 << 30), {**JSON, "Content-Encoding": "zstd"}),
    ("zstd: as an array", "/v1/arrays?dtype=uint8&shape=4294967296", zstd_zeros(4 << 30), {**BYTES, "Content-Encoding": "zstd"}),
    ("zstd: a window of two gigabytes", "/v1/run", zstd_zeros(16 * MIB, b"\xa8"), {**JSON, "Content-Encoding": "zstd"}),
    ("zstd: frames that are skipped", "/v1/run", b"\x50\x2a\x4d\x18\0\0\0\0" * 130_000, {**JSON, "Content-Encoding": "zstd"}),
    ("npy: a head of four gigabytes", "/v1/arrays", b"\x93NUMPY\2\0\xff\xff\xff\xff" + b" " * 1000, NPY),
    ("npy: brackets in a head", "/v1/arrays", npy_with_shape(b"(" * 60_000), NPY),
    ("npy: many dims", "/v1/arrays", npy_with_shape(b"(" + DIMS + b")"), NPY),
    ("npy: a product that overflows", "/v1/arrays", npy_with_shape(b"(4294967296, 4294967296, 16)"), NPY),
    ("npy in gzip: a terabyte", "/v1/arrays", packed(npy_with_shape(b"(1099511627776,)") + bytes(100 * MIB)), {**NPY, "Content-Encoding": "gzip"}),
    ("npz: zeros", "/v1/arrays", zip_of([("a.npy", npy_of(256 * MIB))]), NPZ),
    ("npz: a size that is a lie", "/v1/arrays", lying(zip_of([("a.npy", npy_of(128 * MIB))])), NPZ),
    ("npz: a zip file in a zip file", "/v1/arrays", zip_of([("a.npy", zip_of([("a.npy", npy_of(128 * MIB))]))]), NPZ),
    ("npz: many members", "/v1/arrays", zip_of([(f"{i}.npy", npy_of(0)) for i in range(4500)]), NPZ),
    ("safetensors: a head of 2^63 bytes", "/v1/arrays", tensors_head(b"{}", 1 << 63), TENSORS),
    ("safetensors: objects in objects", "/v1/arrays", tensors_head(b'{"a":' * 200_000), TENSORS),
    ("safetensors: many tensors", "/v1/arrays", tensors_head(b"{" + b",".join(b'"%d":{"x":[]}' % i for i in range(60_000)) + b"}"), TENSORS),
    ("safetensors: exabytes", "/v1/arrays", tensors_head(b'{"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,9223372036854775807]}}'), TENSORS),
    ("safetensors: numbers of a megabyte", "/v1/arrays", tensors_head(b'{"a":{"dtype":"U8","shape":[' + MOST[:900_000] + b"]}}"), TENSORS),
    ("stablehlo: types in types", "/v1/programs", program("func.func @main(%a: " + "tuple<" * 150_000), JSON),
    ("stablehlo: regions in regions", "/v1/programs", program(nested_regions(15_000)), JSON),
    ("stablehlo: lists in a constant", "/v1/programs", program(function("  %0 = stablehlo.constant dense<" + "[" * 900_000)), JSON),
    ("stablehlo: attributes in attributes", "/v1/programs", program(function("  %0 = stablehlo.sine %a {x = " + "{x = " * 150_000)), JSON),
    ("stablehlo: places in places", "/v1/programs", program(function("  %0 = stablehlo.sine %a : tensor<f32> loc(" + "callsite(" * 90_000)), JSON),
    ("stablehlo: types that double", "/v1/programs", program(widening_types(40, 2)), JSON),
    ("stablehlo: types that widen", "/v1/programs", program(widening_types(7, 1000)), JSON),
    ("stablehlo: attributes that double", "/v1/programs", program(widening_attributes(40, 2)), JSON),
    ("stablehlo: attributes that widen", "/v1/programs", program(widening_attributes(7, 1000)), JSON),
    ("stablehlo: calls that double", "/v1/run", run_of(doubling_calls(40), 1), JSON),
    ("stablehlo: a constant of a terabyte", "/v1/run", run_of(function("  %0 = stablehlo.constant dense<1.0> : tensor<274877906944xf32>\n  return %0 : tensor<274877906944xf32>",
                                                                      "274877906944xf32"), 1), JSON),
    ("stablehlo: a result of a terabyte", "/v1/run", run_of(broadcast("274877906944"), 1), JSON),
    ("stablehlo: 2^80 elements", "/v1/run", run_of(broadcast("1099511627776x1099511627776"), 1), JSON),
    ("bytecode: 2^60 strings", "/v1/programs", bytecode((0, varint(1 << 60) + bytes(1000))), BYTES),
    ("bytecode: a section of 2^62 bytes", "/v1/programs", bytecode((0, bytes(1000), 1 << 62)), BYTES),
    ("bytecode: dialects without an end", "/v1/programs", bytecode((0, varint(1) + varint(2) + b"a\0"), (1, varint(1 << 40) + bytes(1000))), BYTES),
    ("export: bytes that are offsets of themselves", "/v1/programs", struct.pack("<I", 8) + b"STBL" + b"\xf8\xff\xff\xff" * 200_000, BYTES),
    ("numpy: brackets", "/v1/run", numpy_run("def f(x): return " + "(" * 250_000 + "x", 1), JSON),
    ("numpy: minus signs", "/v1/run", numpy_run("def f(x): return " + "-" * 250_000 + "x", 1), JSON),
    ("numpy: blocks in blocks", "/v1/run", numpy_run("def f(x):\n" + "".join(" " * i + "if 1:\n" for i in range(1, 700)), 1), JSON),
    ("numpy: a power of a power", "/v1/run", numpy_run("def f(x): return x + 9 ** 9 ** 9 ** 9", 1), JSON),
    ("numpy: a list times a number", "/v1/run", numpy_run("def f(x): return jnp.array([1] * 10 ** 12)", 1), JSON),
    ("numpy: loops that are unrolled", "/v1/run", numpy_run("def f(x):\n for i in [1] * 1000:\n  for j in [1] * 1000:\n   for k in [1] * 1000:\n    x = x * i\n return x", 1), JSON),
    ("zarr: a document that nests", "/v1/zarr/v3/bomb/zarr.json", b'{"attributes": ' + b"[" * 500_000, JSON),
    ("zarr: chunks of exabytes", "/v1/zarr/v3/bomb/zarr.json", zarr_document(shape=[1 << 62], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1 << 62]}}), JSON),
    ("zarr: codecs without an end", "/v1/zarr/v3/bomb/zarr.json", zarr_document(codecs=[{"name": "bytes"}] + [{"name": "gzip", "configuration": {"level": 1}}] * 15_000), JSON),
    ("form: empty parts", "/v1/run", b"--B\r\n\r\n\r\n" * 100_000 + b"--B--\r\n", {"Content-Type": "multipart/form-data; boundary=B"}),
    ("form: a head without an end", "/v1/run", b"--B\r\n" + b"A: b\r\n" * 150_000, {"Content-Type": "multipart/form-data; boundary=B"}),
]
# The same files where they are read whole: alone, and in a form. (As many members as that may be values.)
INFEED, FORM = "/v1/sessions/SESSION/infeed", {"Content-Type": "multipart/form-data; boundary=B"}
FILES = [bomb for bomb in BOMBS if bomb[0].split(":")[0] in ("npy", "npz", "safetensors", "npy in gzip") and bomb[0] != "npz: many members"]
BOMBS += [(f"infeed: {name}", INFEED, body, headers) for name, _, body, headers in FILES]
BOMBS += [(f"infeed in a form: {name}", INFEED, b'--B\r\nContent-Disposition: form-data; name="request"\r\nContent-Type: application/json\r\n\r\n{"values": '
           b'[{"part": "x"}]}\r\n--B\r\nContent-Disposition: form-data; name="x"\r\n\r\n' + body + b"\r\n--B--\r\n", FORM)
          for name, _, body, headers in FILES if "Content-Encoding" not in headers]


def seconds_of(server):
    """Processor time of the server, by the kernel."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answer_to(server, path, body, headers):
    """The status and document of the answer, which may come before all of the body is taken."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        client.putrequest("PUT" if "/zarr/" in path else "POST", path)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            client.putheader(name, value)
        client.endheaders()
        try:
            client.send(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = client.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        client.close()


def judge(server, name, path, body, headers):
    """What is wrong with what the server makes of it, or nothing."""
    assert len(body) <= MOST_SENT, f"{name}: {len(body)} bytes are no small request"
    pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the highest VmRSS begins again
    memory, seconds = memory_of(server, "VmRSS"), seconds_of(server)
    status, document = answer_to(server, path, body, headers)
    memory, seconds = memory_of(server, "VmHWM") - memory, seconds_of(server) - seconds
    code = document.get("code") if isinstance(document, dict) else None
    print(f"  {name}: {len(body)} bytes, {status} {code}, {seconds:.2f} s, {memory / MIB:+.0f} MiB", flush=True)
    if not (400 <= status < 500 or (status == 503 and code == "memory_full")):
        return f"{name}: answered with {status} {str(document)[:300]}"
    if not HAS_SANITIZER and (seconds > MOST_SECONDS or memory > MOST_MEMORY):
        return f"{name}: {seconds:.2f} s of the processor, {memory / MIB:.0f} MiB"
    return None


def main():
    wrong, tried = [], 0
    with Meshd(sys.argv[1]) as server:
        ok(server.ask("POST", "/v1/run", run_of(function("  return %a : tensor<f32>"), 1), JSON))  # what the first run loads is not the bombs'
        session = ok(server.ask("POST", "/v1/sessions"), 201)["id"]
        for bomb in BOMBS:
            if sys.argv[2:] and bomb[0] not in sys.argv[2:]:
                continue
            tried += 1
            name, path, *rest = bomb
            found = judge(server, name, path.replace("SESSION", session), *rest)
            if found:
                wrong.append(found)
            ok(server.ask("GET", "/livez"))
    print(f"{tried} bombs, {len(wrong)} are not refused as they should be", *wrong, sep="\n  ")
    return 1 if wrong or not tried or (tried < 40 and not sys.argv[2:]) else 0


sys.exit(main())
