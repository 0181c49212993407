#!/usr/bin/env python3
"""Files that numpy with ml_dtypes and safetensors have written (files/make_files.py): read bit by bit, and given back so that
np.load reads them."""
import json
import pathlib

import numpy as np

from file_formats import RAW, ok, read_npy, read_npz, read_safetensors, refused, run_tests

FILES = pathlib.Path(__file__).resolve().parent / "files"
VALUES = json.loads((FILES / "values.json").read_text())
OPEN = {"int2", "int4", "uint2", "uint4"} | {name for entry in VALUES.values() for name in [entry["dtype"]] if name.startswith(("float4_", "float6_", "float8_"))}
# What np.load calls them.
VOID = {"bfloat16": "|V2"}


def upload(s, file, query="", headers=RAW):
    return s.ask("POST", "/v1/arrays" + query, (FILES / file).read_bytes(), headers)


def holds(s, array, entry):
    assert (array["dtype"], array["shape"]) == (entry["dtype"], entry["shape"]), (array, entry)
    assert ok(s.ask("GET", f"/v1/arrays/{array['id']}/data")).hex() == entry["bytes"], entry


def test_npy_of_ml_dtypes(s):
    for file, entry in VALUES.items():
        if not file.endswith(".npy"):
            continue
        name = entry["dtype"]
        if name in OPEN and name != "float8_e5m2":
            # '<V1' stands for any of them: the answer lists them, and dtype= says which.
            refused(upload(s, file), 422, "unsupported_dtype", name, "'<V1'")
        made = ok(upload(s, file, f"?dtype={name}"), 201)
        holds(s, made, entry)
        back = read_npy(ok(s.ask("GET", f"/v1/arrays/{made['id']}/data?format=npy")))
        assert back.dtype.str == VOID.get(name, "|V1") and list(back.shape) == entry["shape"]
        assert back.tobytes().hex() == entry["bytes"]
        member = read_npz(ok(s.ask("GET", f"/v1/arrays/{made['id']}/data?format=npz&compression=deflate")))
        assert [array.tobytes().hex() for array in member.values()] == [entry["bytes"]]
    holds(s, ok(upload(s, "bfloat16.npy"), 201), VALUES["bfloat16.npy"])
    holds(s, ok(upload(s, "float8_e5m2.npy"), 201), VALUES["float8_e5m2.npy"])
    refused(upload(s, "bfloat16.npy", "?dtype=float16"), 422, "invalid_query")
    refused(upload(s, "float8_e3m4.npy", "?dtype=float32"), 422, "unsupported_dtype")


def test_new_data_says_what_open_heads_are(s):
    made = ok(upload(s, "float8_e3m4.npy", "?dtype=float8_e3m4"), 201)
    again = ok(s.ask("PUT", f"/v1/arrays/{made['id']}/data", (FILES / "float8_e4m3.npy").read_bytes(), RAW))
    assert again["version"] == 2 and again["dtype"] == "float8_e3m4"


def test_npz_of_ml_dtypes(s):
    for file in ("checkpoint.npz", "checkpoint_deflated.npz"):
        members = {name.split("#")[1]: entry for name, entry in VALUES.items() if name.startswith(file)}
        refused(s.ask("POST", "/v1/arrays:import", (FILES / file).read_bytes(), RAW), 422, "unsupported_dtype", "w/scale")
        made = ok(s.ask("POST", "/v1/arrays:import?dtype_for=w/scale=float8_e4m3fn&dtype_for=w/state=float8_e5m2",
                        (FILES / file).read_bytes(), RAW), 201)["items"]
        for array in made:
            holds(s, array, members.pop(array["name"]))
        assert not members
        ids = "&".join("id=" + array["id"] for array in made)
        back = read_npz(ok(s.ask("GET", f"/v1/arrays:export?format=npz&{ids}")))
        assert {name: array.dtype.str for name, array in back.items()} == {
            "w/kernel": "|V2", "w/scale": "|V1", "w/state": "|V1", "step": "<i4"}
    wrong = "dtype_for=step=float32", "dtype_for=nobody=int8", "dtype_for=step", "dtype_for=step=float", "dtype_for=a=int8&dtype_for=a=int8"
    for query in wrong:
        query += "&dtype_for=w/scale=float8_e4m3fn"
        refused(s.ask("POST", "/v1/arrays:import?" + query, (FILES / "checkpoint.npz").read_bytes(), RAW), 422, "invalid_query")
    refused(s.ask("POST", "/v1/arrays:import?dtype_for=step=flaot32", (FILES / "checkpoint.npz").read_bytes(), RAW), 422, "invalid_query",
            "'flaot32' is no dtype", "'float32'")


def test_safetensors_of_the_library(s):
    made = ok(upload(s, "tensors.safetensors"), 201)["items"]
    entries = {name.split("#")[1]: entry for name, entry in VALUES.items() if name.startswith("tensors")}
    assert {array["name"] for array in made} == set(entries)
    for array in made:
        holds(s, array, entries[array["name"]])
    ids = "&".join("id=" + array["id"] for array in made)
    back = read_safetensors(ok(s.ask("GET", f"/v1/arrays:export?{ids}")))
    sent = read_safetensors((FILES / "tensors.safetensors").read_bytes())
    assert back == sent
    refused(upload(s, "four_bits.safetensors"), 422, "unsupported_dtype", "F4", "F8_E8M0")


def test_raw_bytes_of_narrow_integers_are_those_of_ml_dtypes(s):
    """0x0f is -1 as int4, whatever its other bits are."""
    made = ok(s.ask("POST", "/v1/arrays?dtype=int4&shape=4", bytes([0x0F, 0x08, 0x87, 0xFF]), RAW), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data?format=json"))["data"] == [-1, -8, 7, -1]
    made = ok(s.ask("POST", "/v1/arrays?dtype=uint2&shape=3", bytes([0xFF, 4, 1]), RAW), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{made['id']}/data?format=json"))["data"] == [3, 0, 1]


def test_the_package_reads_what_files_cannot_say(s):
    """Array-Dtype names what np.load calls void."""
    made = ok(upload(s, "bfloat16.npy"), 201)
    _, headers, file = s.ask("GET", f"/v1/arrays/{made['id']}/data?format=npy")
    assert headers["Array-Dtype"] == "bfloat16" and np.dtype("|V2") == read_npy(file).dtype


if __name__ == "__main__":
    run_tests(globals())
