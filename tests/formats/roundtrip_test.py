#!/usr/bin/env python3
"""Arrays up and down in every format that has their dtype: what comes back is what was sent, bit by bit."""
import numpy as np

from file_formats import (DTYPES, RAW, SHAPES, awkward_bytes, mesh_of, ok, read_npy, read_npz, read_safetensors, refused, run_tests,
                          spec_of, write_npy, write_npz, write_safetensors)

NPY = {"Content-Type": "application/x-npy"}
NPZ = {"Content-Type": "application/zip"}
TENSORS = {"Content-Type": "application/x-safetensors"}


def mesh(s):
    return mesh_of(s, ["x", "y"], [[0, 1], [2, 3], [4, 5]])


def all_types():
    random = np.random.default_rng(2026)
    for dtype, npy, word in DTYPES:
        for shape in SHAPES:
            yield dtype, npy, word, shape, awkward_bytes(random, dtype, shape), random


def place(s, random, shape):
    """The query of an even or uneven cut over six devices, or of none."""
    return "" if random.integers(0, 3) == 0 else f"&mesh={mesh(s)}&spec={spec_of(random, shape, ['x', 'y'])}"


def same_array(array, npy, shape, data):
    assert (array.dtype.str, array.shape, array.tobytes()) == (npy, shape, data), (array.dtype.str, npy, array.shape, shape)


def test_npy_both_ways(s):
    for dtype, npy, _, shape, data, random in all_types():
        if npy is None:
            continue
        sent = write_npy(np.frombuffer(data, npy).reshape(shape))
        made = ok(s.ask("POST", "/v1/arrays?name=a" + place(s, random, shape), sent, NPY), 201)
        assert (made["dtype"], tuple(made["shape"])) == (dtype, shape)
        at = f"/v1/arrays/{made['id']}/data"
        same_array(read_npy(ok(s.ask("GET", at + "?format=npy"))), npy, shape, data)
        assert ok(s.ask("GET", at)) == data
        same_array(read_npz(ok(s.ask("GET", at + "?format=npz")))["a"], npy, shape, data)
        same_array(read_npz(ok(s.ask("GET", at + "?format=npz&compression=deflate")))["a"], npy, shape, data)


def test_safetensors_both_ways(s):
    for dtype, _, word, shape, data, random in all_types():
        if word is None:
            continue
        file = write_safetensors({"t": (word, shape, data)}, {"made": "here"})
        (made,) = ok(s.ask("POST", "/v1/arrays?" + place(s, random, shape)[1:], file, TENSORS), 201)["items"]
        assert (made["name"], made["dtype"], tuple(made["shape"])) == ("t", dtype, shape)
        assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == data
        back = ok(s.ask("GET", f"/v1/arrays/{made['id']}/data", headers={"Accept": "application/x-safetensors"}))
        assert read_safetensors(back) == {"t": (word, shape, data)}


def test_many_in_a_file(s):
    """Every dtype and shape in one safetensors file, and in one .npz file stored and deflated."""
    tensors, arrays = {}, {}
    for dtype, npy, word, shape, data, _ in all_types():
        name = f"{dtype}/{'x'.join(map(str, shape)) or 'scalar'}"
        if word is not None:
            tensors[name] = (word, shape, data)
        if npy is not None:
            arrays[name] = np.frombuffer(data, npy).reshape(shape)
    made = ok(s.ask("POST", f"/v1/arrays:import?format=safetensors&durability=memory&mesh={mesh(s)}", write_safetensors(tensors), RAW), 201)
    assert [item["name"] for item in made["items"]] == list(tensors) and made["next"] is None
    some = list(zip(tensors, made["items"]))[::9]
    target = "/v1/arrays:export?" + "&".join("id=" + item["id"] for _, item in some)
    assert read_safetensors(ok(s.ask("GET", target))) == {name: tensors[name] for name, _ in some}
    for compressed in (False, True):
        made = ok(s.ask("POST", "/v1/arrays?durability=memory", write_npz(arrays, compressed), NPZ), 201)["items"]
        assert [item["name"] for item in made] == list(arrays)
        some = made[compressed::7]
        target = "/v1/arrays:export?format=npz&" + "&".join("id=" + item["id"] for item in some)
        for how in ("stored", "deflate"):
            back = read_npz(ok(s.ask("GET", target + "&compression=" + how)))
            assert list(back) == [item["name"] for item in some]
            for name, array in back.items():
                same_array(array, arrays[name].dtype.str, arrays[name].shape, arrays[name].tobytes())


def test_a_model_is_cut_as_asked(s):
    weights = np.arange(12 * 8, dtype=np.float32).reshape(12, 8)
    bias = np.arange(8, dtype=np.float32)
    file = write_safetensors({"layer.weight": ("F32", (12, 8), weights.tobytes()), "layer.bias": ("F32", (8,), bias.tobytes())})
    query = f"/v1/arrays?mesh={mesh(s)}&spec=&spec_for=layer.weight=x,y&prefix=run1/"
    made = ok(s.ask("POST", query, file, TENSORS), 201)["items"]
    assert [(item["name"], item["shard_shape"]) for item in made] == [("run1/layer.weight", [4, 4]), ("run1/layer.bias", [8])]
    assert ok(s.ask("GET", f"/v1/arrays/{made[0]['id']}/shards/3?format=raw")) == weights[4:8, 4:8].tobytes()
    assert {item["id"] for item in ok(s.ask("GET", "/v1/arrays?name=run1/layer.bias"))["items"]} == {made[1]["id"]}
    refused(s.ask("POST", query + "&spec_for=layer.wieght=x", file, TENSORS), 422, "layer.wieght")
    refused(s.ask("POST", query + "&spec_for=layer.bias=x,y", file, TENSORS), 422, 'array "layer.bias"', "rank at least 2")
    refused(s.ask("POST", query + "&name=one", file, TENSORS), 422, "name", "prefix")


def test_fortran_order(s):
    """What numpy saves of transposed arrays: first index fastest."""
    for dtype, npy, _, shape, data, random in all_types():
        if npy is None:
            continue
        array = np.asfortranarray(np.frombuffer(data, npy).reshape(shape))
        one = ok(s.ask("POST", "/v1/arrays?durability=memory" + place(s, random, shape), write_npy(array), NPY), 201)
        (two,) = ok(s.ask("POST", "/v1/arrays?durability=memory" + place(s, random, shape), write_npz({"a": array}), NPZ), 201)["items"]
        for made in (one, two):
            assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == data, (dtype, shape)
        if shape:
            half = np.asfortranarray(array[::2])
            ok(s.ask("PUT", f"/v1/arrays/{one['id']}/data?slice=::2", write_npy(np.asfortranarray(half[::-1])), NPY))
            expected = array.copy()
            expected[::2] = half[::-1]
            assert ok(s.ask("GET", f"/v1/arrays/{one['id']}/data")) == expected.tobytes(), (dtype, shape)
    big = np.asfortranarray(np.arange(1500 * 700, dtype=np.int32).reshape(1500, 700))
    made = ok(s.ask("POST", f"/v1/arrays?mesh={mesh(s)}&spec=y,x", write_npy(big), NPY), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data")) == big.tobytes()


def test_random_slices(s):
    random = np.random.default_rng(4)
    for _ in range(150):
        shape = tuple(int(n) for n in random.integers(1, 6, int(random.integers(1, 5))))
        whole = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
        made = ok(s.ask("POST", "/v1/arrays?durability=memory" + place(s, random, shape), write_npy(whole), NPY), 201)
        for _ in range(6):
            parts = [slice(int(random.integers(-n - 1, n + 2)), int(random.integers(-n - 1, n + 2)), int(random.integers(1, 5))) for n in shape]
            field = ",".join(f"{part.start}:{part.stop}:{part.step}" for part in parts)
            expected = whole[tuple(parts)]
            status, headers, body = s.ask("GET", f"/v1/arrays/{made['id']}/data?slice={field}")
            assert (status, body, headers["Array-Shape"]) == (200, expected.tobytes(), ",".join(map(str, expected.shape))), (shape, field)


def test_slices_and_ranges_of_files(s):
    whole = np.arange(7 * 5, dtype=np.int16).reshape(7, 5)
    made = ok(s.ask("POST", f"/v1/arrays?name=w&mesh={mesh(s)}&spec=x,y", write_npy(whole), NPY), 201)
    at = f"/v1/arrays/{made['id']}/data"
    part = whole[1:6:2, ::2]
    for form, read in (("npz", lambda d: read_npz(d)["w"]), ("npy", read_npy)):
        assert np.array_equal(read(ok(s.ask("GET", f"{at}?slice=1:6:2,::2&format={form}"))), part)
    assert read_safetensors(ok(s.ask("GET", at + "?slice=1:6:2,::2&format=safetensors")))["w"][1:] == (part.shape, part.tobytes())
    for target in (at + "?format=safetensors", at + "?format=npz", f"/v1/arrays:export?id={made['id']}"):
        file = ok(s.ask("GET", target))
        assert ok(s.ask("GET", target, headers={"Range": "bytes=5-77"}), 206) == file[5:78]
        assert ok(s.ask("GET", target, headers={"Range": "bytes=-9"}), 206) == file[-9:]
        status, headers, _ = s.ask("HEAD", target)
        assert status == 200 and int(headers["Content-Length"]) == len(file)


def test_what_a_format_cannot_hold(s):
    half = ok(s.ask("POST", "/v1/arrays?dtype=bfloat16&shape=2", b"abcd", RAW), 201)["id"]
    wide = ok(s.ask("POST", "/v1/arrays?dtype=complex128&shape=1", b"a" * 16, RAW), 201)["id"]
    refused(s.ask("GET", f"/v1/arrays/{wide}/data?format=safetensors"), 406, "complex128")
    refused(s.ask("GET", f"/v1/arrays:export?id={half}&id={wide}"), 406, "complex128")
    refused(s.ask("GET", f"/v1/arrays:export?id={half}&as=__metadata__"), 406, "__metadata__")
    refused(s.ask("GET", f"/v1/arrays:export?id={half}&id={half}"), 422, "as=")
    assert sorted(read_safetensors(ok(s.ask("GET", f"/v1/arrays:export?id={half}&id={half}&as=a&as=b")))) == ["a", "b"]
    refused(s.ask("GET", f"/v1/arrays:export?id={half}&as=a&as=b"), 422, "2 names for 1 arrays")
    refused(s.ask("GET", f"/v1/arrays/{half}/data?format=raw&compression=deflate"), 422, "compression")
    refused(s.ask("GET", "/v1/arrays:export?id=arr_none"), 404)


def test_large_files(s):
    """Larger than any piece that the server works in, and with shards that lie in many stretches."""
    random = np.random.default_rng(5)
    big = random.integers(0, 1 << 30, (3001, 513), dtype=np.int64)
    text = np.repeat(np.arange(4096, dtype=np.float64), 64)
    query = f"/v1/arrays?mesh={mesh(s)}&spec=&spec_for=big=y,x&durability=memory"
    for compressed in (False, True):
        made = ok(s.ask("POST", query, write_npz({"big": big, "text": text}, compressed), NPZ), 201)["items"]
        ids = "&".join("id=" + item["id"] for item in made)
        for target in (f"/v1/arrays:export?{ids}&format=npz", f"/v1/arrays:export?{ids}&format=npz&compression=deflate"):
            back = read_npz(ok(s.ask("GET", target)))
            assert np.array_equal(back["big"], big) and np.array_equal(back["text"], text)
        file = ok(s.ask("GET", f"/v1/arrays:export?{ids}"))
        assert read_safetensors(file)["big"][2] == big.tobytes()
        again = ok(s.ask("POST", query, file, TENSORS), 201)["items"]
        assert ok(s.ask("GET", f"/v1/arrays/{again[0]['id']}/data")) == big.tobytes()


run_tests(globals())
