#!/usr/bin/env python3
"""Files that lie about themselves: each is refused with 4xx, the answer says which field is wrong, and nothing is made."""
import io
import json
import random
import struct
import zipfile

import numpy as np

from file_formats import chunked, file_of, ok, read_safetensors, refused, run_tests, write_npy, write_npz, write_safetensors

TENSORS = {"Content-Type": "application/x-safetensors"}
NPZ = {"Content-Type": "application/zip"}
GOOD = {"a": ("F32", (2, 2), bytes(16)), "b": ("U8", (3,), b"xyz")}


def count(s):
    return len(ok(s.ask("GET", "/v1/arrays?limit=1000"))["items"])


def send(s, file, kind=TENSORS):
    return s.ask("POST", "/v1/arrays", file, kind)


def head(entries, data=b""):
    return file_of(json.dumps(entries).encode() if not isinstance(entries, (bytes, str)) else entries if isinstance(entries, bytes) else entries.encode(), data)


def entry(dtype="U8", shape=(4,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def test_safetensors_heads(s):
    before = count(s)
    for file, status, *words in (
            (b"", 400, "ends"),
            (b"\1\0\0", 400, "ends"),
            (struct.pack("<Q", 1 << 63) + b"{}", 400, "9223372036854775808 bytes"),
            (struct.pack("<Q", (1 << 20) + 1) + b"{}", 400, "1048577 bytes"),
            (struct.pack("<Q", 100) + b"{}", 400, "ends"),
            (head(""), 400, "'{'"),
            (head(" {}"), 400, "'{'"),
            (head("[]"), 400, "'{'"),
            (head("{"), 400),
            (head("{}{}"), 400),
            (head('{"a":' * 70 + "1" + "}" * 70), 400, "deep"),
            (head('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', b"xy"), 400, "a"),
            (head('{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"), 400, "dtype"),
            (head("{" + ",".join(f'"{i}":{{"x":[]}}' for i in range(60000)) + "}"), 400),
            (head({"a": [0, 4]}, b"abcd"), 400, "/a"),
            (head({"a": {"dtype": "U8", "shape": [4]}}, b"abcd"), 400, "/a/data_offsets", "missing"),
            (head({"a": {"shape": [4], "data_offsets": [0, 4]}}, b"abcd"), 400, "/a/dtype"),
            (head({"a": entry(more=1)}, b"abcd"), 400, "/a/more"),
            (head({"a": entry(dtype="F4")}, b"abcd"), 422, "F4", "/a/dtype", "BF16"),
            (head({"a": entry(dtype="float32")}, b"abcd"), 422, "/a/dtype"),
            (head({"a": entry(dtype="")}, b"abcd"), 422, "/a/dtype"),
            (head({"a": entry(dtype=7)}, b"abcd"), 400, "/a/dtype"),
            (head({"a": entry(shape=[-4])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(shape=[4.5])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(shape=["4"])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(shape=[True])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(shape=[1 << 32, 1 << 32])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(shape=[1 << 64])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(dtype="F64", shape=[1 << 61])}, b"abcd"), 400, "/a/shape"),
            (head({"a": entry(offsets=[0, 5])}, b"abcde"), 400, "/a/data_offsets", "5 bytes"),
            (head({"a": entry(offsets=[4, 0])}, b"abcd"), 400, "/a/data_offsets"),
            (head({"a": entry(offsets=[-4, 0])}, b"abcd"), 400, "/a/data_offsets"),
            (head({"a": entry(offsets=[0, 4, 8])}, b"abcd"), 400, "/a/data_offsets"),
            (head({"a": entry(offsets=[0])}, b"abcd"), 400, "/a/data_offsets"),
            (head({"a": entry(offsets=[0, 1 << 63])}, b"abcd"), 400, "/a/data_offsets"),
            (head({"a": entry(offsets=[1, 5])}, b"xabcd"), 400, "/a/data_offsets", "hole"),
            (head({"a": entry(), "b": entry(offsets=[3, 7])}, b"abcdefg"), 400, "/b/data_offsets", "overlap"),
            (head({"a": entry(), "b": entry()}, b"abcd"), 400, "data_offsets", "overlap"),
            (head({"a": entry(), "b": entry(offsets=[5, 9])}, b"abcdxabcd"), 400, "/b/data_offsets", "hole"),
            (head({"a": entry(), "e": entry(shape=[0], offsets=[2, 2])}, b"abcd"), 400, "data_offsets"),
            (head({"a": entry()}, b"abc"), 400, "3"),
            (head({"a": entry()}, b"abcde"), 400, "5"),
            (head({"__metadata__": {"n": 1}, "a": entry()}, b"abcd"), 400, "/__metadata__/n"),
            (head({"__metadata__": [], "a": entry()}, b"abcd"), 400, "/__metadata__"),
            (head({"a": entry(shape=[1 << 50], offsets=[0, 1 << 50])}, b"abcd"), 413, "bytes"),
            (head({f"t{i}": entry(shape=[1 << 36], offsets=[i << 36, (i + 1) << 36]) for i in range(64)}), 413, "bytes"),
            (head({f"t{i}": entry(shape=[0], offsets=[0, 0]) for i in range(5000)}), 422, "4096")):
        answer = send(s, file)
        refused(answer, status, *words)
        assert answer[1]["Content-Type"] == "application/problem+json"
    longer = head({"a": entry()}, b"abcde")
    refused(chunked(s, "POST", "/v1/arrays", [longer[:20], longer[20:]], {**TENSORS, "Transfer-Encoding": "chunked"}), 400)
    assert count(s) == before, "all or none"


def test_all_mistakes_at_once(s):
    file = head({"a": entry(shape=[-1]), "b": entry(offsets=[4, 3]), "c": {"dtype": "U8"}})
    pointers = {error["pointer"] for error in refused(send(s, file), 400)["errors"]}
    assert pointers == {"/a/shape", "/b/data_offsets", "/c/shape", "/c/data_offsets"}, pointers


def test_right_but_unusual(s):
    for file in (write_safetensors({}), write_safetensors(GOOD, {"k": "v"}, pad=13),
                 head({"b": entry(offsets=[4, 8]), "a": entry(), "e": entry(shape=[3, 0], offsets=[4, 4]), "": entry(shape=[], offsets=[8, 9])}, b"abcdefghi")):
        made = ok(send(s, file), 201)["items"]
        tensors = read_by_hand(file)
        assert {item["name"] for item in made} == set(tensors)
        for item in made:
            assert ok(s.ask("GET", f"/v1/arrays/{item['id']}/data")) == tensors[item["name"]]


def read_by_hand(file):
    (length,) = struct.unpack_from("<Q", file)
    data = file[8 + length:]
    entries = json.loads(file[8:8 + length])
    return {name: data[slice(*e["data_offsets"])] for name, e in entries.items() if name != "__metadata__"}


def test_damaged_safetensors(s):
    """Seeded damage: never 5xx, never a hang; what is taken is a file that the rules allow."""
    rng = random.Random(7)
    good = write_safetensors(GOOD, {"k": "v"})
    taken = 0
    for _ in range(400):
        file = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(file))
            if rng.random() < 0.5:
                file[at] = rng.randrange(256)
            elif rng.random() < 0.5:
                del file[at:at + rng.randint(1, 9)]
            else:
                file[at:at] = bytes(rng.choice(b'{}[],:"0123456789-') for _ in range(rng.randint(1, 5)))
            if not file:
                break
        status, _, body = send(s, bytes(file))
        assert status in (201, 400, 413, 422), (status, body, bytes(file))
        if status == 201:
            taken += 1
            assert {item["name"] for item in body["items"]} == set(read_by_hand(bytes(file)))
    assert taken < 200


def zip_of(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name) if method == zipfile.ZIP_STORED else name, data)
    return out.getvalue()


def patched(file, at, data):
    return file[:at] + data + file[at + len(data):]


def test_npz_files(s):
    before = count(s)
    npy = write_npy(np.arange(6, dtype=np.float32))
    good = zip_of([("a.npy", npy)])
    central = good.index(b"PK\1\2")
    end = good.index(b"PK\5\6")
    start = 30 + len("a.npy")
    lzma = zip_of([("a.npy", npy)], zipfile.ZIP_LZMA)
    deflated = zip_of([("a.npy", npy)], zipfile.ZIP_DEFLATED)
    for file, status, *words in (
            (b"", 400, "ends"),
            (b"PK\3\4", 400, "ends"),
            (b"not a zip file at all", 400, "zip"),
            (good[:-1], 400, "ends"),
            (good[:end], 400, "ends"),
            (good[:central], 400, "ends"),
            (good + b"x", 400, "behind"),
            (patched(good, 6, b"\1\0"), 422, "encrypted"),
            (lzma, 422, "method 14"),
            (patched(good, 14, b"\0\0\0\0"), 400, "'a.npy'", "checksum"),
            (patched(good, start + len(npy) - 1, b"\x7f"), 400, "checksum"),
            (patched(good, 18, struct.pack("<I", len(npy) - 4)), 400, "'a.npy'", "ends before"),
            (patched(good, 18, struct.pack("<I", len(npy) + 4)), 400, "'a.npy'"),
            (patched(good, 22, struct.pack("<I", len(npy) + 4)), 400, "'a.npy'"),
            (patched(good, central + 46, b"b"), 400, "b.npy", "otherwise"),
            (patched(good, central + 16, b"\0\0\0\0"), 400, "otherwise"),
            (patched(good, central + 42, struct.pack("<I", 7)), 400, "otherwise"),
            (good[:central] + good[end:], 400, "a.npy"),
            (zip_of([("a.npy", npy + b"more")]), 400, "a.npy"),
            (zip_of([("a.npy", npy[:-1])]), 400, "a.npy"),
            (zip_of([("a.npy", b"text")]), 400, "a.npy"),
            (zip_of([("a.npy", npy), ("a.npy", npy)]), 400, "two members"),
            (zip_of([("a.txt", b"text")]), 400, "a.txt"),
            (zip_of([("a.npy", write_npy(np.array(["text"])))]), 422, "a.npy"),
            (zip_of([("a.npy", write_npy(np.zeros(3, ">f4")))]), 422, "a.npy", "big-endian"),
            (deflated[:start + 5] + b"\xff" * 4 + deflated[start + 9:], 400, "a.npy"),
            (zip_of([("big.npy", write_npy(np.zeros(4 << 20, np.uint8)))], zipfile.ZIP_DEFLATED), 413, "200 times", "savez"),
            (zip_of([(f"{i}.npy", write_npy(np.zeros((), np.uint8))) for i in range(4097)]), 422, "4096")):
        refused(send(s, file, NPZ), status, *words)
    assert count(s) == before
    assert ok(send(s, zip_of([]), NPZ), 201)["items"] == []


class OneWay(io.RawIOBase):
    """A file that cannot go back: zipfile tells sizes behind the members then."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data)
        return len(data)


def test_npz_written_one_way(s):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        out = OneWay()
        with zipfile.ZipFile(out, "w", method) as file:
            for name in ("a", "b"):
                with file.open(name + ".npy", "w", force_zip64=name == "b") as member:
                    member.write(write_npy(np.arange(5.0)))
            file.comment = b"said behind"
        made = ok(send(s, out.data, NPZ), 201)["items"]
        assert [item["name"] for item in made] == ["a", "b"]
        for item in made:
            assert ok(s.ask("GET", f"/v1/arrays/{item['id']}/data")) == np.arange(5.0).tobytes()


def test_damaged_npz(s):
    rng = random.Random(11)
    for good in (write_npz({"a": np.arange(300), "b": np.eye(3)}), write_npz({"a": np.arange(300), "b": np.eye(3)}, True)):
        for _ in range(300):
            file = bytearray(good)
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(file)) if rng.random() < 0.5 else min(len(file) - 1, rng.randrange(90))
                if rng.random() < 0.7:
                    file[at] = rng.randrange(256)
                else:
                    del file[at:at + rng.randint(1, 6)]
            status, _, body = send(s, bytes(file), NPZ)
            assert status in (201, 400, 413, 422), (status, body)


def test_names_and_types(s):
    file = write_safetensors(GOOD)
    refused(s.ask("POST", "/v1/arrays:import", file, {"Content-Type": "text/html"}), 415, "format=safetensors")
    refused(s.ask("POST", "/v1/arrays:import?format=npy", file), 422, "format")
    refused(s.ask("POST", "/v1/arrays:import?format=safetensors&dtype=float32", file), 422, "/dtype")
    refused(s.ask("POST", "/v1/arrays:import?format=safetensors&nonsense=1", file), 422, "nonsense")
    refused(s.ask("POST", "/v1/arrays:import?format=safetensors&spec_for=a", file), 422, "spec_for")
    refused(s.ask("POST", "/v1/arrays:import?format=safetensors&spec_for=a=x", file), 422, "mesh")
    names = ["ä/ö\n", "日本", "a\"b\\c", " ", "../../etc/passwd", "x" * 1024]
    made = ok(send(s, write_safetensors({name: ("U8", (1,), bytes([i])) for i, name in enumerate(names)})), 201)["items"]
    assert [item["name"] for item in made] == names
    refused(send(s, write_safetensors({"x" * 1025: ("U8", (1,), b"1")})), 422, "1024 bytes")
    target = "/v1/arrays:export?" + "&".join("id=" + item["id"] for item in made)
    assert list(read_safetensors(ok(s.ask("GET", target)))) == names
    with np.load(io.BytesIO(ok(s.ask("GET", target + "&format=npz")))) as back:
        assert back.files == names


run_tests(globals())
