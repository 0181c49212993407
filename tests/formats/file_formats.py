"""Safetensors and .npz in memory, written from their descriptions; dtypes; arrays of awkward bits."""
import http.client
import io
import json
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, ok, refused_with as refused  # noqa: E402, F401

# Our name, NumPy's, that of safetensors; None where there is none.
DTYPES = [("bool", "|b1", "BOOL"), ("int8", "|i1", "I8"), ("int16", "<i2", "I16"), ("int32", "<i4", "I32"), ("int64", "<i8", "I64"),
          ("uint8", "|u1", "U8"), ("uint16", "<u2", "U16"), ("uint32", "<u4", "U32"), ("uint64", "<u8", "U64"), ("float16", "<f2", "F16"),
          ("float32", "<f4", "F32"), ("float64", "<f8", "F64"), ("complex64", "<c8", "C64"), ("complex128", "<c16", None),
          ("bfloat16", None, "BF16"), ("float8_e4m3fn", None, "F8_E4M3"), ("float8_e5m2", None, "F8_E5M2")]
ITEM_BYTES = {"bool": 1, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
# Ranks 0 to 5, with sizes of 0 and 1, even and uneven.
SHAPES = [(), (0,), (1,), (7,), (8, 2), (3, 0), (0, 0), (5, 3), (2, 3, 4), (4, 0, 2), (2, 1, 3, 5), (2, 3, 2, 1, 4), (3, 2, 0, 2, 2)]

RAW = {"Content-Type": "application/octet-stream"}


def item_bytes(dtype):
    return ITEM_BYTES.get(dtype) or np.dtype(dtype).itemsize


def awkward_bytes(random, dtype, shape):
    """Random bits: NaNs of all kinds, infinities, denormal numbers; 0 and 1 for bool."""
    count = int(np.prod(shape, dtype=np.int64)) * item_bytes(dtype)
    return bytes(random.integers(0, 2 if dtype == "bool" else 256, count, dtype=np.uint8))


def write_safetensors(tensors, metadata=None, pad=0):
    """tensors: name -> (word, shape, bytes), in the order of their bytes."""
    head, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (word, shape, data) in tensors.items():
        head[name] = {"dtype": word, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    return file_of(json.dumps(head).encode() + b" " * pad, b"".join(data for _, _, data in tensors.values()))


def file_of(head, data=b""):
    return struct.pack("<Q", len(head)) + head + data


def read_safetensors(file):
    """name -> (word, shape, bytes); all rules of the format are checked."""
    (length,) = struct.unpack_from("<Q", file)
    text = file[8:8 + length]
    assert text.startswith(b"{") and length % 8 == 0
    head, data = json.loads(text, object_pairs_hook=no_twice), file[8 + length:]
    out, spans = {}, []
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        assert set(entry) == {"dtype", "shape", "data_offsets"}, entry
        begin, end = entry["data_offsets"]
        spans.append((begin, end))
        out[name] = (entry["dtype"], tuple(entry["shape"]), data[begin:end])
    at = 0
    for begin, end in sorted(spans):
        assert begin == at and end >= begin, spans
        at = end
    assert at == len(data), "the whole buffer is covered"
    return out


def no_twice(pairs):
    assert len({name for name, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


def write_npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def write_npz(arrays, compressed=False):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def read_npy(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def read_npz(data):
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def chunked(s, method, path, pieces, headers):
    """As s.ask, the body in chunks of these pieces."""
    connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    try:
        connection.request(method, path, iter(pieces), headers, encode_chunked=True)
        answer = connection.getresponse()
        data = answer.read()
        return answer.status, answer.headers, json.loads(data) if "json" in (answer.getheader("Content-Type") or "") else data
    finally:
        connection.close()


def mesh_of(s, names, devices):
    got = s.ask("POST", "/v1/meshes", {"axis_names": names, "devices": devices})
    assert got[0] in (200, 201), got
    return got[2]["id"]


def spec_of(random, shape, axes):
    """Each axis on a random dimension, or on none."""
    dims = [[] for _ in shape]
    for axis in axes:
        at = int(random.integers(0, len(shape) + 1))
        if at < len(shape):
            dims[at].append(axis)
    return ",".join(".".join(dim) for dim in dims)


def run_tests(rows, *arguments):
    """Runs every test_ function of a module against one server: MODULE.py BINARY [words that names must have]."""
    tests = [f for name, f in rows.items() if name.startswith("test_") and all(word in name for word in sys.argv[2:])]
    with Meshd(sys.argv[1], "--devices", "8", *arguments) as server:
        for test in tests:
            test(server)
            print("holds:", test.__name__, flush=True)
