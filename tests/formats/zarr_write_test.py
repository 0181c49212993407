#!/usr/bin/env python3
"""Groups and arrays by name as Zarr, versions 2 and 3: written chunk by chunk in every codec, committed, and read back bit by bit; with the
standard library, numpy and curl."""
import gzip
import itertools
import json
import math
import struct
import subprocess
import sys
import time

import numpy as np

from file_formats import DTYPES, RAW, SHAPES, Meshd, awkward_bytes, mesh_of, ok, refused, run_tests, spec_of, write_npy

NAMES = {dtype: npy for dtype, npy, _ in DTYPES if npy}
LEVELS = {"gzip": {"level": 5}, "zstd": {"level": 3, "checksum": False},
          "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}


def raw_zstd(data):
    """A zstd frame (RFC 8878) of blocks that are not compressed."""
    out, most = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)), 1 << 16
    for at in range(0, len(data), most):
        block = data[at:at + most]
        out += (int(at + most >= len(data)) | len(block) << 3).to_bytes(3, "little") + block
    return out


def raw_blosc(data):
    """A chunk of Blosc, version 1, whose bytes are copied."""
    return struct.pack("<BBBBIII", 2, 1, 2, 1, len(data), max(len(data), 1), len(data) + 16) + data


ENCODERS = {None: bytes, "gzip": gzip.compress, "zstd": raw_zstd, "blosc": raw_blosc}


def array3(dtype, shape, chunks, fill, codec=None, **more):
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}} if np.dtype(NAMES[dtype]).itemsize > 1 else {"name": "bytes"}]
    if codec:
        codecs.append({"name": codec, "configuration": LEVELS[codec]})
    return {"zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": fill, "codecs": codecs, **more}


def array2(dtype, shape, chunks, fill, codec=None, **more):
    compressor = None if codec is None else {"id": codec, "level": 5, "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    return {"zarr_format": 2, "shape": list(shape), "chunks": list(chunks), "dtype": NAMES[dtype], "compressor": compressor, "fill_value": fill,
            "order": "C", "filters": None, **more}


def key_of(version, index):
    return "/".join(["c", *map(str, index)]) if version == 3 else ".".join(map(str, index)) or "0"


def put_meta(s, version, name, document, query="", base=None, status=201):
    key = "zarr.json" if version == 3 else ".zarray"
    return ok(s.ask("PUT", f"/v1/zarr/{base or f'v{version}'}/{name}/{key}{query}", document), status)


def chunk_of(array, chunks, index, fill_with=b"\xee"):
    """All of a chunk; what is outside of the array is anything."""
    where = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunks, array.shape))
    out = np.frombuffer(fill_with * (int(np.prod(chunks, dtype=np.int64)) * array.itemsize), array.dtype).reshape(chunks).copy()
    out[tuple(slice(0, w.stop - w.start) for w in where)] = array[where]
    return out.tobytes()


def grid(shape, chunks):
    return itertools.product(*(range(math.ceil(n / c)) for n, c in zip(shape, chunks)))


def read(s, base, version):
    """The array at an address, by its document and chunks."""
    document = ok(s.ask("GET", base + ("zarr.json" if version == 3 else ".zarray")))
    chunks = document["chunk_grid"]["configuration"]["chunk_shape"] if version == 3 else document["chunks"]
    numpy_type = NAMES[document["data_type"]] if version == 3 else document["dtype"]
    out = np.zeros(document["shape"], numpy_type)
    for index in grid(out.shape, chunks):
        status, headers, body = s.ask("GET", base + key_of(version, index))
        assert status == 200 and headers["Cache-Control"] == "no-store", (status, headers["Cache-Control"])
        where = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunks, out.shape))
        out[where] = np.frombuffer(body, numpy_type).reshape(chunks)[tuple(slice(0, w.stop - w.start) for w in where)]
    return out


def fill_of(rng, dtype):
    """A fill value as Zarr writes it, and its bytes."""
    kind = np.dtype(NAMES[dtype]).kind
    if kind == "b":
        return True, np.array(True).tobytes()
    if kind in "iu":
        value = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, dtype=dtype, endpoint=True)
        return int(value), value.tobytes()
    if kind == "f":
        text, value = [(1.5, 1.5), ("NaN", np.nan), ("-Infinity", -np.inf)][rng.integers(0, 3)]
        return text, np.array(value, dtype).tobytes()
    return [1.5, "Infinity"], np.array(complex(1.5, np.inf), dtype).tobytes()


def test_every_type_shape_and_codec(s):
    rng = np.random.default_rng(19)
    mesh = mesh_of(s, ["x", "y"], [[0, 1], [2, 3], [4, 5]])
    for version, dtype, shape in itertools.product((3, 2), NAMES, SHAPES):
        data = awkward_bytes(rng, dtype, shape)
        array = np.frombuffer(data, NAMES[dtype]).reshape(shape)
        chunks = [int(rng.integers(1, max(size, 1) + 2)) for size in shape]
        codec = [None, "gzip", "zstd", "blosc"][rng.integers(0, 4)]
        fill, fill_bytes = fill_of(rng, dtype)
        query = f"?mesh={mesh}&spec={spec_of(rng, shape, ['x', 'y'])}" if rng.integers(0, 2) else "?durability=memory"
        put_meta(s, version, "all/a", (array3 if version == 3 else array2)(dtype, shape, chunks, fill, codec), query)
        expected = array.copy()
        indices = [tuple(index) for index in grid(shape, chunks)]
        rng.shuffle(indices)
        for index in indices:
            index = tuple(map(int, index))
            if rng.integers(0, 4) == 0:  # it never comes
                where = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks))
                expected[where] = np.frombuffer(fill_bytes, NAMES[dtype])[0]
                continue
            body = chunk_of(array, chunks, index)
            if dtype == "bool":
                body = bytes(byte & 1 for byte in body)
            ok(s.ask("PUT", f"/v1/zarr/v{version}/all/a/{key_of(version, index)}", ENCODERS[codec](body), RAW), 204)
        (made,) = ok(s.ask("POST", f"/v1/zarr/v{version}/all:commit"), 201)["items"]
        assert (made["name"], made["dtype"], made["shape"], made["unique"], made["state"]) == ("all/a", dtype, list(shape), True, "ready")
        assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == expected.tobytes(), (version, dtype, shape, chunks, codec, query)
        assert read(s, f"/v1/zarr/v{version}/all/a/", version).tobytes() == expected.tobytes()
        ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)


def test_pending_arrays_are_read_back_by_their_writer_alone(s):
    data = np.arange(35, dtype=np.int16).reshape(7, 5)
    for version, codec in itertools.product((3, 2), ENCODERS):
        name, key = f"/v1/zarr/v{version}-pending/p/a/", "zarr.json" if version == 3 else ".zarray"
        document = (array3 if version == 3 else array2)("int16", (7, 5), (4, 3), 9, codec)
        made = put_meta(s, version, "p/a", document, base=f"v{version}-pending")
        assert (made["state"], made["pending"]["parts"], made["pending"]["missing"]) == ("pending", 4, 4)
        assert ok(s.ask("GET", name + key)) == document
        refused(s.ask("GET", name.replace("-pending", "") + key), 404)
        refused(s.ask("GET", name + key_of(version, (1, 1))), 404)
        sent = ENCODERS[codec](chunk_of(data, (4, 3), (1, 1), b"\0"))
        ok(s.ask("PUT", name + key_of(version, (1, 1)), sent, RAW), 204)
        # What comes back is of the codec that the server itself has: it is put again, into another chunk's place and its own.
        back = ok(s.ask("GET", name + key_of(version, (1, 1))))
        if codec == "gzip":
            assert gzip.decompress(back) == chunk_of(data, (4, 3), (1, 1), b"\0")
        ok(s.ask("PUT", name + key_of(version, (1, 1)), back, RAW), 204)
        assert ok(s.ask("GET", f"/v1/arrays/{made['id']}"))["pending"]["missing"] == 3
        refused(s.ask("PUT", f"/v1/arrays/{made['id']}/shards/0", write_npy(data)), 409, "written as Zarr")
        # The same document again keeps the chunks; another one begins anew.
        assert put_meta(s, version, "p/a", document)["id"] == made["id"]
        ok(s.ask("DELETE", name + key_of(version, (0, 0))), 204)
        ok(s.ask("DELETE", name + key_of(version, (1, 1))), 204)
        refused(s.ask("GET", name + key_of(version, (1, 1))), 404)
        ok(s.ask("PUT", name + key_of(version, (0, 1)), ENCODERS[codec](chunk_of(data, (4, 3), (0, 1))), RAW), 204)
        expected = np.full((7, 5), 9, np.int16)
        expected[:4, 3:] = data[:4, 3:]
        ok(s.ask("POST", f"/v1/zarr/v{version}-pending/p/a:commit"), 201)
        assert (read(s, f"/v1/zarr/v{version}/p/a/", version) == expected).all(), (version, codec)
        refused(s.ask("PUT", name + key_of(version, (0, 1)), sent, RAW), 409, "PUT its")
        ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)


def test_groups(s):
    for version in (3, 2):
        base = f"/v1/zarr/v{version}/"
        attributes = {"title": "ocean", "meshd": {"array": "arr_old"}, "n": 1.5, "é": [None, True]}
        named = {"units": "K", "_FillValue": 3}
        if version == 3:
            ok(s.ask("PUT", base + "g/zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": attributes, "consolidated_metadata":
                                                   {"kind": "inline", "must_understand": False, "metadata": {"x": {}}}}), 204)
            put_meta(s, 3, "g/sub/w", array3("float32", (4, 2), (2, 2), 0.0, attributes=named, dimension_names=["time", None]))
        else:
            # In any order: clients send both documents of a node at once.
            ok(s.ask("PUT", base + "g/sub/w/.zattrs", {**named, "_ARRAY_DIMENSIONS": ["time", "x"]}), 204)
            refused(s.ask("POST", base + "g:commit"), 409, ".zattrs")
            put_meta(s, 2, "g/sub/w", array2("float32", (4, 2), (2, 2), 0.0))
            ok(s.ask("PUT", base + "g/.zattrs", attributes), 204)
            ok(s.ask("PUT", base + "g/.zgroup", {"zarr_format": 2}), 204)
            ok(s.ask("PUT", base + "g/.zmetadata", {"zarr_consolidated_format": 1, "metadata": {}}), 204)
        meta = "zarr.json" if version == 3 else ".zgroup"
        refused(s.ask("GET", base + "g/" + meta), 404)
        ok(s.ask("GET", base.replace("/v1/zarr/v%d" % version, "/v1/zarr/v%d-pending" % version) + "g/" + meta))
        assert len(ok(s.ask("POST", base + "g:commit"), 201)["items"]) == 1
        ok(s.ask("POST", "/v1/arrays?name=g/plain/b", write_npy(np.zeros(3)), {"Content-Type": "application/x-npy"}), 201)
        ok(s.ask("POST", "/v1/arrays?name=g/half&dtype=bfloat16&shape=2", b"abcd", RAW), 201)
        ok(s.ask("POST", "/v1/arrays?name=g/sub/w/under", write_npy(np.zeros(3)), {"Content-Type": "application/x-npy"}), 201)
        ok(s.ask("POST", "/v1/arrays?name=g//odd", write_npy(np.zeros(3)), {"Content-Type": "application/x-npy"}), 201)
        document = ok(s.ask("GET", base + "g/" + ("zarr.json" if version == 3 else ".zmetadata")))
        if version == 3:
            assert document["consolidated_metadata"]["kind"] == "inline" and document["consolidated_metadata"]["must_understand"] is False
            members, group = document["consolidated_metadata"]["metadata"], document["attributes"]
            assert {name: node["node_type"] for name, node in members.items()} == {"plain": "group", "plain/b": "array", "sub": "group", "sub/w": "array"}
            w = members["sub/w"]
            assert w["dimension_names"] == ["time", "w_dim_1"] and "_ARRAY_DIMENSIONS" not in w["attributes"]
            assert w["attributes"]["units"] == "K" and members["plain/b"]["dimension_names"] == ["b_dim_0"]
            assert w == ok(s.ask("GET", base + "g/sub/w/zarr.json"))
            attributes_of_w = w["attributes"]
        else:
            members, group = document["metadata"], document["metadata"][".zattrs"]
            assert set(members) == {".zgroup", ".zattrs"} | {f"{at}/{key}" for at in ("plain", "sub") for key in (".zgroup", ".zattrs")} | {
                f"{at}/{key}" for at in ("plain/b", "sub/w") for key in (".zarray", ".zattrs")}, set(members)
            attributes_of_w = members["sub/w/.zattrs"]
            assert attributes_of_w["_ARRAY_DIMENSIONS"] == ["time", "x"] and members["plain/b/.zattrs"]["_ARRAY_DIMENSIONS"] == ["b_dim_0"]
            assert attributes_of_w == ok(s.ask("GET", base + "g/sub/w/.zattrs")) and members["sub/w/.zarray"] == ok(s.ask("GET", base + "g/sub/w/.zarray"))
            assert ok(s.ask("GET", base + "g/.zattrs")) == group and ok(s.ask("GET", base + "g/plain/.zattrs")) == {}
        assert attributes_of_w["_FillValue"] == 3
        assert (group["title"], group["n"], group["é"]) == ("ocean", 1.5, [None, True])
        assert set(group["meshd"]["left_out"]) == {"half", "sub/w/under", "/odd"} and group["meshd"]["left_out"]["half"] == "bfloat16"
        refused(s.ask("GET", base + "g/half/" + ("zarr.json" if version == 3 else ".zarray")), 406, "bfloat16")
        # What the attributes call pinned is one version; the other form of Zarr has the same attributes.
        pinned = attributes_of_w["meshd"]["pinned"]
        assert pinned.endswith("/v1/zarr")
        for at in (pinned + "/v3/", pinned + "/", f"/v1/arrays/{attributes_of_w['meshd']['array']}/zarr/", f"/v1/arrays/{attributes_of_w['meshd']['array']}/zarr/v3/"):
            status, headers, body = s.ask("GET", at + "zarr.json")
            assert status == 200 and body["attributes"]["units"] == "K", (at, status)
            assert ("immutable" in headers["Cache-Control"]) == at.startswith(pinned) and (headers["Cache-Control"] == "no-store") != at.startswith(pinned)
        for at, key in (("v3", ".zarray"), ("v2", "zarr.json"), ("v2", "c/0/0"), ("v3", "0.0")):
            refused(s.ask("GET", f"{pinned}/{at}/{key}"), 404)
        root = ok(s.ask("GET", base + ("zarr.json" if version == 3 else ".zmetadata")))
        assert ("g/sub/w" in root["consolidated_metadata"]["metadata"]) if version == 3 else ("g/sub/w/.zarray" in root["metadata"])
        for key in ("g/sub/w/.zgroup", "g/.zarray", "nothing/zarr.json", "nothing/.zgroup", "g", "g/sub/w/c/9/9", "g/sub/w/9.9", "g/c/0", "g/sub/w/c/00/0"):
            refused(s.ask("GET", base + key), 404)
        refused(s.ask("GET", "/v1/zarr/v4/g/zarr.json"), 404, "v4")
        # A group without arrays is there as long as its document is.
        ok(s.ask("DELETE", "/v1/arrays?prefix=g/"))
        ok(s.ask("GET", base + "g/" + meta))
        ok(s.ask("DELETE", base + "g/" + meta), 204)
        refused(s.ask("GET", base + "g/" + meta), 404)
        refused(s.ask("DELETE", base + "g/" + meta), 404)


def test_versions_and_ranges(s):
    made = ok(s.ask("PUT", "/v1/arrays/by-name/now/a/data", write_npy(np.arange(6, dtype=np.int32)), {"Content-Type": "application/x-npy"}), 201)
    at = "/v1/zarr/v3/now/a/"
    first = s.ask("GET", at + "c/0")
    assert first[1]["Cache-Control"] == "no-store" and s.ask("HEAD", at + "c/0")[1]["Content-Length"] == "24"
    assert s.ask("GET", at + "c/0", headers={"Range": "bytes=4-7"})[::2] == (206, first[2][4:8])
    assert s.ask("GET", at + "c/0", headers={"Range": "bytes=-4"})[::2] == (206, first[2][-4:])
    assert s.ask("GET", at + "c/0", headers={"Range": "bytes=24-"})[0] == 416
    assert s.ask("GET", at + "c/0", headers={"If-None-Match": first[1]["ETag"]})[0] == 304
    ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data?slice=0:1", b"\7\0\0\0", RAW))
    second = s.ask("GET", at + "c/0")
    assert second[2][:4] == b"\7\0\0\0" and second[1]["ETag"] != first[1]["ETag"]
    assert ok(s.ask("GET", at + "zarr.json"))["attributes"]["meshd"]["version"] == 2
    refused(s.ask("GET", f"/v1/arrays/{made['id']}/v1/zarr/v3/c/0"), 410)
    ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)
    refused(s.ask("GET", at + "zarr.json"), 404)


def test_refusals_name_what_is_refused(s):
    def three(**changes):
        return {**array3("float32", (4, 4), (2, 2), 0.0), **changes}

    def two(**changes):
        return {**array2("float32", (4, 4), (2, 2), 0.0), **changes}

    at3, at2 = "/v1/zarr/v3/no/zarr.json", "/v1/zarr/v2/no/.zarray"
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 0]}}
    bytes_ = {"name": "bytes", "configuration": {"endian": "little"}}
    for at, document, words in [
            (at3, three(data_type="bfloat16"), ["bfloat16", "float32"]), (at3, three(data_type="string"), ["string"]),
            (at3, three(data_type={"name": "numpy.datetime64", "configuration": {}}), ["numpy.datetime64"]), (at3, three(data_type="r16"), ["r16"]),
            (at3, three(chunk_grid={"name": "rectangular"}), ["rectangular"]), (at3, three(chunk_grid=grid), ["/chunk_grid/configuration/chunk_shape"]),
            (at3, three(chunk_key_encoding={"name": "v2"}), ["v2"]),
            (at3, three(chunk_key_encoding={"name": "default", "configuration": {"separator": "."}}), ["separator '.'"]),
            (at3, three(codecs=[{"name": "sharding_indexed"}]), ["sharding_indexed"]), (at3, three(codecs=[]), ["bytes"]),
            (at3, three(codecs=[{"name": "transpose"}, bytes_]), ["transpose"]), (at3, three(codecs=[bytes_, {"name": "crc32c"}]), ["crc32c"]),
            (at3, three(codecs=[{"name": "bytes", "configuration": {"endian": "big"}}]), ["big"]),
            (at3, three(codecs=[bytes_, {"name": "blosc", "configuration": {"cname": "snappy9"}}]), ["snappy9"]),
            (at3, three(codecs=[bytes_, {"name": "gzip", "configuration": {}}, {"name": "zstd"}]), ["zstd"]),
            (at3, three(storage_transformers=[{}]), ["storage_transformers"]), (at3, three(fill_value="blue"), ["/fill_value"]),
            (at3, three(fill_value=None), ["/fill_value"]), (at3, three(fill_value="0x7fc0"), ["/fill_value"]), (at3, three(shape=[4]), ["chunk_shape"]),
            (at3, three(shape=[-1, 4]), ["/shape"]), (at3, three(shape=[1 << 62, 1 << 62]), ["63 bits"]), (at3, three(shape=["4", 4]), ["/shape"]),
            (at3, three(dimension_names=["a"]), ["/dimension_names"]), (at3, three(attributes=[1]), ["/attributes"]), (at3, three(new=1), ["/new"]),
            (at3, three(zarr_format=2), ["/zarr_format"]), (at3, three(node_type="table"), ["/node_type"]), (at3, [], ["a list"]),
            (at3, {"zarr_format": 3}, ["/node_type"]), (at3, {"zarr_format": 3, "node_type": "array"}, ["/shape", "/codecs"]),
            (at3, three(shape=[1 << 20, 4], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1, 1]}}), ["chunks"]),
            (at3, three(shape=[1 << 20, 1 << 20], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1 << 20, 1 << 10]}}), ["smaller"]),
            (at2, two(dtype=">f4"), [">f4"]), (at2, two(dtype="|O"), ["|O"]), (at2, two(dtype="<M8[ns]"), ["<M8[ns]"]), (at2, two(dtype="<V2"), ["<V2"]),
            (at2, two(dtype=[["a", "<f4"]]), ["<f4"]), (at2, two(order="F"), ["'F'"]), (at2, two(filters=[{"id": "delta"}]), ["filters"]),
            (at2, two(compressor={"id": "lzma"}), ["lzma"]), (at2, two(dimension_separator="/"), ["dimension_separator"]), (at2, two(chunks=[4]), ["/chunks"]),
            (at2, two(zarr_format=3), ["/zarr_format"]), (at2, two(fill_value=[0]), ["/fill_value"])]:
        got = s.ask("PUT", at, document)
        assert got[0] == 422, (document, got)
        refused(got, 422, *words)
    refused(s.ask("PUT", at3, b'{"zarr_format": 3,'), 400)
    refused(s.ask("PUT", at3, b'{"a": 1, "a": 2}'), 400)
    refused(s.ask("PUT", "/v1/zarr/v3/zarr.json", three()), 422, "root")
    refused(s.ask("PUT", at3, {"zarr_format": 3, "node_type": "group", "attributes": {"a": "x" * 300_000}}), 413)
    refused(s.ask("PUT", at3, {"zarr_format": 3, "node_type": "group", "attributes": {"a": "x" * 5_000_000}}), 413)
    refused(s.ask("PUT", "/v1/zarr/v3/no/__a/zarr.json", three()), 422, "__")
    for key in ("no/.zarray", "no", "no/c/x", "no/0.0"):
        refused(s.ask("PUT", "/v1/zarr/v3/" + key, three()), 404, "Zarr version 3")
    refused(s.ask("PUT", at3 + "?mesh=mesh_" + "0" * 32, three()), 404)
    refused(s.ask("PUT", at3 + "?shape=2", three()), 422, "shape")
    refused(s.ask("POST", "/v1/zarr/v3/no:commit"), 404, "nothing is pending")
    refused(s.ask("POST", "/v1/zarr/v3:commit"), 404, "nothing is pending")
    refused(s.ask("PUT", "/v1/zarr/v3/no/c/0/0", b"x", RAW), 409, "zarr.json")


def test_chunks_that_lie(s):
    for codec, bad in [(None, [b"", b"x" * 15, b"x" * 17]),
                       ("gzip", [b"", b"x" * 16, gzip.compress(b"x" * 17), gzip.compress(b"x" * 15), gzip.compress(b"x" * 16)[:-3], gzip.compress(b"x" * 16) + b"junk",
                                 gzip.compress(bytes(100_000_000))]),
                       ("zstd", [b"", b"x" * 16, raw_zstd(b"x" * 17), raw_zstd(b"x" * 15), raw_zstd(b"x" * 16)[:-1], raw_zstd(b"x" * 16) + b"junk"]),
                       ("blosc", [b"", b"x" * 16, raw_blosc(b"x" * 17), raw_blosc(b"x" * 15), raw_blosc(b"x" * 16)[:-1], raw_blosc(b"x" * 16) + b"j",
                                  struct.pack("<BBBBIII", 2, 1, 0x21, 4, 16, 16, 36) + b"\xff" * 20])]:
        put_meta(s, 3, "lie", array3("float32", (5,), (4,), 1.0, codec))
        for body in bad:
            refused(s.ask("PUT", "/v1/zarr/v3/lie/c/0", body, RAW), 400, "chunk")
        for key in ("c/2", "c/0/0", "c", "c/99999999999999999999"):
            refused(s.ask("PUT", "/v1/zarr/v3/lie/" + key, b"x" * 16, RAW), 404)
        ok(s.ask("PUT", "/v1/zarr/v3/lie/c/1", ENCODERS[codec](np.full(4, 2, np.float32).tobytes()), RAW), 204)
        (made,) = ok(s.ask("POST", "/v1/zarr/v3/lie:commit"), 201)["items"]
        assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == np.array([1, 1, 1, 1, 2], np.float32).tobytes()
        ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)


def test_commits_are_all_or_nothing(s):
    held = ok(s.ask("POST", "/v1/arrays?name=c/b", write_npy(np.zeros(3)), {"Content-Type": "application/x-npy"}), 201)["id"]
    for name in ("c/a", "c/b"):
        put_meta(s, 3, name, array3("uint8", (2,), (2,), 5))
        ok(s.ask("PUT", f"/v1/zarr/v3/{name}/c/0", b"ab", RAW), 204)
    refused(s.ask("POST", "/v1/zarr/v3/c:commit"), 409, held, "replace=true")
    refused(s.ask("GET", "/v1/zarr/v3/c/a/zarr.json"), 404)
    key = {"Idempotency-Key": "once"}
    done = ok(s.ask("POST", "/v1/zarr/v3/c:commit?replace=true", headers=key), 201)
    assert [each["name"] for each in done["items"]] == ["c/a", "c/b"]
    status, headers, again = s.ask("POST", "/v1/zarr/v3/c:commit?replace=true", headers=key)
    assert (status, again, headers["Idempotency-Replayed"]) == (201, done, "true")
    refused(s.ask("GET", f"/v1/arrays/{held}"), 404)
    refused(s.ask("DELETE", "/v1/zarr/v3/c/a/zarr.json"), 409, "/v1/arrays/")
    # A part that is deleted is not passed over.
    ids = [put_meta(s, 3, f"d/{name}", array3("uint8", (2,), (2,), 5))["id"] for name in "ab"]
    ok(s.ask("DELETE", f"/v1/arrays/{ids[0]}"), 204)
    refused(s.ask("POST", "/v1/zarr/v3/d:commit"), 404, "d/a")
    refused(s.ask("PUT", "/v1/zarr/v3/d/a/c/0", b"ab", RAW), 404)
    ok(s.ask("DELETE", "/v1/zarr/v3/d/a/zarr.json"), 204)
    assert [each["id"] for each in ok(s.ask("POST", "/v1/zarr/v3:commit"), 201)["items"]] == ids[1:]
    # Names that only begin like the path are not of it.
    for name in ("e", "e/a", "e-a", "ea"):
        put_meta(s, 3, name, array3("uint8", (), (), 5))
    assert [each["name"] for each in ok(s.ask("POST", "/v1/zarr/v3/e:commit"), 201)["items"]] == ["e", "e/a"]
    assert [each["name"] for each in ok(s.ask("POST", "/v1/zarr/v3:commit"), 201)["items"]] == ["e-a", "ea"]
    assert ok(s.ask("GET", "/v1/zarr/v3/e/c")) == b"\5"
    # A group that is described gives way to an array of its name.
    ok(s.ask("PUT", "/v1/zarr/v3/f/zarr.json", {"zarr_format": 3, "node_type": "group"}), 204)
    ok(s.ask("POST", "/v1/zarr/v3/f:commit"), 201)
    put_meta(s, 3, "f", array3("uint8", (), (), 5))
    ok(s.ask("POST", "/v1/zarr/v3/f:commit"), 201)
    assert ok(s.ask("GET", "/v1/zarr/v3/f/zarr.json"))["node_type"] == "array"
    ok(s.ask("DELETE", "/v1/arrays?prefix=f"))
    refused(s.ask("GET", "/v1/zarr/v3/f/zarr.json"), 404)


def test_large_arrays_go_to_the_disk(s):
    """8 MiB in chunks that lie across the shards, in any order, some twice and some never."""
    rng = np.random.default_rng(20)
    mesh = mesh_of(s, ["x", "y"], [[0, 1], [2, 3]])
    data = rng.integers(0, 1 << 32, (1500, 1400), dtype=np.uint32)
    for fill, spec in ((0, "x,y"), (7, ",y.x")):
        put_meta(s, 3, "large", array3("uint32", data.shape, (400, 333), fill, "gzip"), f"?mesh={mesh}&spec={spec}")
        expected = np.full(data.shape, fill, np.uint32)
        indices = list(grid(data.shape, (400, 333)))
        for place in rng.permutation(len(indices))[3:]:
            index = indices[place]
            body = gzip.compress(chunk_of(data, (400, 333), index), 1)
            if place % 3 == 0:
                ok(s.ask("PUT", "/v1/zarr/v3/large/" + key_of(3, index), gzip.compress(chunk_of(~data, (400, 333), index), 1), RAW), 204)
                if place % 2 == 0:
                    ok(s.ask("DELETE", "/v1/zarr/v3/large/" + key_of(3, index)), 204)
                    continue
            ok(s.ask("PUT", "/v1/zarr/v3/large/" + key_of(3, index), body, RAW), 204)
            where = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, (400, 333)))
            expected[where] = data[where]
            if place % 5 == 0:
                back = gzip.decompress(ok(s.ask("GET", "/v1/zarr/v3-pending/large/" + key_of(3, index))))
                assert back == chunk_of(data, (400, 333), index, b"\0")
        (made,) = ok(s.ask("POST", "/v1/zarr/v3/large:commit"), 201)["items"]
        assert made["shard_count"] == 4 and ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == expected.tobytes()
        s.stop()
        s.start()
        assert (read(s, "/v1/zarr/v3/large/", 3) == expected).all()
        ok(s.ask("DELETE", f"/v1/arrays/{made['id']}"), 204)


def test_a_restart_forgets_what_is_not_committed(s):
    put_meta(s, 3, "r/a", array3("uint8", (2,), (1,), 5))
    ok(s.ask("PUT", "/v1/zarr/v3/r/a/c/0", b"a", RAW), 204)
    ok(s.ask("PUT", "/v1/zarr/v3/r/zarr.json", {"zarr_format": 3, "node_type": "group"}), 204)
    s.stop()
    s.start()
    refused(s.ask("PUT", "/v1/zarr/v3/r/a/c/1", b"b", RAW), 409, "a restart forgets")
    refused(s.ask("POST", "/v1/zarr/v3/r:commit"), 404)


def test_curl_writes_and_reads(s):
    """As the guide has it."""
    at = f"{s.url}/v1/zarr/v3/curl"
    lines = [["-T", "-", at + "/w/zarr.json"], ["-T", "-", at + "/w/c/0"], ["-T", "-", at + "/w/c/1"]]
    inputs = [json.dumps(array3("float32", (4,), (2,), 0.0)).encode(), np.array([1, 2], np.float32).tobytes(), np.array([3, 4], np.float32).tobytes()]
    for line, data in zip(lines, inputs):
        subprocess.run(["curl", "-sS", "--fail-with-body", *line], input=data, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["curl", "-sS", "--fail-with-body", "-X", "POST", at + ":commit"], check=True, stdout=subprocess.DEVNULL)
    got = subprocess.run(["curl", "-sS", "--fail-with-body", at + "/w/c/0"], check=True, capture_output=True).stdout
    assert np.frombuffer(got, np.float32).tolist() == [1, 2, 3, 4]


def test_pending_arrays_expire_together(_):
    with Meshd(sys.argv[1], "--pending-timeout", "1") as s:
        ids = [put_meta(s, 3, f"x/{name}", array3("uint8", (2,), (1,), 5))["id"] for name in "ab"]
        ok(s.ask("PUT", "/v1/zarr/v3/x/zarr.json", {"zarr_format": 3, "node_type": "group"}), 204)
        deadline = time.monotonic() + 60
        while any(s.ask("GET", f"/v1/arrays/{each}")[0] == 200 for each in ids):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused(s.ask("POST", "/v1/zarr/v3/x:commit"), 404)


def test_principals_have_hierarchies_of_their_own(_):
    import os
    import tempfile
    with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
        tokens.write("ann ann\nbob bob\nread look reader\n")
        tokens.flush()
        os.chmod(tokens.name, 0o600)
        with Meshd(sys.argv[1], "--tokens", tokens.name, "--principal-bytes", "100") as s:
            def by(token, method, path, body=None, headers=None):
                return s.ask(method, path, body, {**(headers or {}), "Authorization": "Bearer " + token})

            ok(by("ann", "PUT", "/v1/zarr/v3/t/a/zarr.json", array3("uint8", (60,), (60,), 5)), 201)
            refused(by("bob", "GET", "/v1/zarr/v3-pending/t/a/zarr.json"), 404)
            refused(by("bob", "PUT", "/v1/zarr/v3/t/a/c/0", b"x" * 60, RAW), 409)
            refused(by("bob", "POST", "/v1/zarr/v3/t:commit"), 404)
            refused(by("look", "PUT", "/v1/zarr/v3/t/a/zarr.json", array3("uint8", (1,), (1,), 5)), 403)
            refused(by("ann", "PUT", "/v1/zarr/v3/t/b/zarr.json", array3("uint8", (60,), (60,), 5)), 413)
            # Another document is charged beside the first, and what is refused changes nothing of that.
            refused(by("ann", "PUT", "/v1/zarr/v3/t/a/zarr.json", array3("uint8", (70,), (60,), 5)), 413)
            ok(by("ann", "PUT", "/v1/zarr/v3/t/a/c/0", b"x" * 60, RAW), 204)
            ok(by("ann", "DELETE", "/v1/zarr/v3/t/a/zarr.json"), 204)
            ok(by("ann", "PUT", "/v1/zarr/v3/t/a/zarr.json", array3("uint8", (70,), (60,), 5)), 201)
            ok(by("ann", "POST", "/v1/zarr/v3/t:commit"), 201)
            refused(by("bob", "GET", "/v1/zarr/v3/t/a/zarr.json"), 404)
            refused(by("bob", "GET", "/v1/zarr/v3/t/zarr.json"), 404)
            status, headers, _ = by("ann", "GET", "/v1/zarr/v3/t/zarr.json")
            assert status == 200 and headers["Cache-Control"] == "no-store"


run_tests(globals())
