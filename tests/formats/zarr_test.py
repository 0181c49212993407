#!/usr/bin/env python3
"""Arrays as Zarr, versions 2 and 3: read here by a small reader that does as the specifications say, and where python3-zarr is installed
(Debian has version 2.13) by that too, bit by bit."""
import itertools
import json
import math

import numpy as np

from file_formats import DTYPES, RAW, SHAPES, awkward_bytes, mesh_of, ok, refused, run_tests, spec_of, write_npy

try:
    import zarr
except ImportError:
    zarr = None

LEAST = {"i": lambda t: np.iinfo(t).min, "u": lambda t: np.iinfo(t).max}


def read_zarr(s, base, document, numpy_type, key_of):
    """Chunk by chunk; what is missing reads as the fill value."""
    shape, chunk = tuple(document["shape"]), tuple(document.get("chunks") or document["chunk_grid"]["configuration"]["chunk_shape"]) if document["shape"] else ()
    out = np.zeros(shape, numpy_type)
    assert len(chunk) == len(shape) and all(size >= 1 for size in chunk)
    for index in itertools.product(*(range(math.ceil(n / c)) for n, c in zip(shape, chunk))):
        status, headers, body = s.ask("GET", base + key_of(index))
        assert status == 200 and "immutable" in headers["Cache-Control"] and headers["ETag"].startswith('"'), (status, key_of(index), body)
        block = np.frombuffer(body, numpy_type).reshape(chunk)
        where = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunk, shape))
        out[where] = block[tuple(slice(0, w.stop - w.start) for w in where)]
        rest = block.copy()
        rest[tuple(slice(0, w.stop - w.start) for w in where)] = 0
        assert not rest.tobytes().strip(b"\0"), "what fills a chunk up is 0"
    return out


def check_fill(numpy_type, value):
    kind = np.dtype(numpy_type).kind
    wanted = {"b": True, "f": "NaN", "c": ["NaN", "NaN"]}.get(kind, None)
    assert value == (LEAST[kind](numpy_type) if wanted is None else wanted), (numpy_type, value)


class Store(dict):
    """What python3-zarr wants of a store: keys and bytes."""

    def __init__(self, s, base):
        super().__init__()
        self.server, self.base = s, base

    def __getitem__(self, key):
        status, _, body = self.server.ask("GET", self.base + key)
        if status == 404:
            raise KeyError(key)
        assert status == 200, (key, status, body)
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    def __contains__(self, key):
        return self.server.ask("HEAD", self.base + key)[0] == 200


def test_every_type_and_shape(s):
    rng = np.random.default_rng(77)
    mesh = mesh_of(s, ["x", "y"], [[0, 1], [2, 3], [4, 5]])
    by_library = 0
    for dtype, npy, _ in DTYPES:
        if npy is None:
            continue
        for shape in SHAPES:
            data = awkward_bytes(rng, dtype, shape)
            array = np.frombuffer(data, npy).reshape(shape)
            place = f"?durability=memory&mesh={mesh}&spec={spec_of(rng, shape, ['x', 'y'])}" if rng.integers(0, 3) else "?durability=memory"
            made = ok(s.ask("POST", "/v1/arrays" + place, write_npy(array), {"Content-Type": "application/x-npy"}), 201)
            base = f"/v1/arrays/{made['id']}/v1/zarr/"
            three = ok(s.ask("GET", base + "zarr.json"))
            assert (three["zarr_format"], three["node_type"], three["shape"], three["data_type"]) == (3, "array", list(shape), dtype)
            assert three["codecs"][0]["name"] == "bytes" and len(three["codecs"]) == 1
            assert ("configuration" in three["codecs"][0]) == (array.itemsize > 1)
            check_fill(npy, three["fill_value"])
            assert three["attributes"]["meshd"]["version"] == 1 and len(three["dimension_names"]) == len(shape)
            back = read_zarr(s, base, three, npy, lambda index: "/".join(["c", *map(str, index)]))
            assert back.tobytes() == data, (dtype, shape, place)
            two = ok(s.ask("GET", base + ".zarray"))
            assert (two["zarr_format"], two["dtype"], two["order"], two["compressor"], two["filters"]) == (2, npy, "C", None, None)
            check_fill(npy, two["fill_value"])
            back = read_zarr(s, base, two, npy, lambda index: ".".join(map(str, index)) or "0")
            assert back.tobytes() == data, (dtype, shape, place)
            assert len(ok(s.ask("GET", base + ".zattrs"))["_ARRAY_DIMENSIONS"]) == len(shape)
            if zarr is not None:
                opened = zarr.open_array(Store(s, base), mode="r")
                assert (opened.shape, opened.dtype.str) == (shape, npy) and np.asarray(opened[...]).tobytes() == data, (dtype, shape, place)
                by_library += 1
            ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)
    print(f"python3-zarr read {by_library} arrays" if zarr else "python3-zarr is not installed")


def test_keys_ranges_and_versions(s):
    mesh = mesh_of(s, ["x", "y"], [[0, 1], [2, 3]])
    data = np.arange(35, dtype=np.int32).reshape(7, 5)
    made = ok(s.ask("POST", f"/v1/arrays?name=a&mesh={mesh}&spec=x,y", write_npy(data), {"Content-Type": "application/x-npy"}), 201)
    at = f"/v1/arrays/{made['id']}"
    chunk = ok(s.ask("GET", at + "/v1/zarr/c/0/0"))
    assert chunk == data[:4, :3].tobytes()
    for key in (".zgroup", ".zmetadata", "c", "c/", "0", "0.0.0", "c/0", "c/0/0/0", "2.0", "c/0/2", "c/00/0", "c/+0/0", "c/-1/0", "01.0", "c/99999999999999999999/0",
                "zarr.json/c/0/0", "a/.zarray", "c/0.0"):
        refused(s.ask("GET", at + "/v1/zarr/" + key), 404)
    for asked, status, body in (("bytes=3-9", 206, chunk[3:10]), ("bytes=40-", 206, chunk[40:]), ("bytes=-5", 206, chunk[-5:])):
        assert s.ask("GET", at + "/v1/zarr/c/0/0", headers={"Range": asked})[::2] == (status, body)
    assert s.ask("GET", at + "/v1/zarr/c/0/0", headers={"Range": "bytes=48-"})[0] == 416
    status, headers, _ = s.ask("HEAD", at + "/v1/zarr/1.1")
    assert status == 200 and headers["Content-Length"] == str(4 * 3 * 4)
    tags = {s.ask("GET", at + "/v1/zarr/" + key)[1]["ETag"] for key in ("0.0", "0.1", "1.0", "1.1", "zarr.json", ".zarray", ".zattrs")}
    assert len(tags) == 7
    ok(s.ask("PUT", at + "/data?slice=0:1", data[6:].tobytes(), RAW))
    for key in ("zarr.json", ".zarray", "c/0/0", "0.0"):
        refused(s.ask("GET", at + "/v1/zarr/" + key), 410, "v2/zarr")
    assert ok(s.ask("GET", at + "/v2/zarr/0.1"))[:8] == data[6:, 3:].tobytes()
    for version in ("3", "0", "02", "x", "99999999999999999999"):
        refused(s.ask("GET", f"{at}/v{version}/zarr/zarr.json"), 404)
    ok(s.ask("POST", at + ":move"), 201)
    refused(s.ask("GET", at + "/v2/zarr/zarr.json"), 410)
    half = ok(s.ask("POST", "/v1/arrays?dtype=bfloat16&shape=2", b"abcd", RAW), 201)["id"]
    for key in ("zarr.json", ".zarray"):
        refused(s.ask("GET", f"/v1/arrays/{half}/v1/zarr/{key}"), 406, "bfloat16")


run_tests(globals())
