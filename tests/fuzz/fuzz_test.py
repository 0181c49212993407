#!/usr/bin/env python3
"""fuzz_test.py TARGET: damages the seeds of a fuzz target for 3 seconds, 60 under MESHD_LONG=1 (./dev check-long), 8 hours with LONG=1. The
input that ended it is kept as /tmp/meshd-fuzz-TARGET; FUZZ_SEED draws other damage. To look at it again: TARGET 1 0 FILE, in a folder of its own.
Once it is mended the input goes to kept/TARGET beside this file: what is there is run first in each run, and damaged like the seeds."""
import base64
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = pathlib.Path(sys.argv[1]).resolve()
SECONDS = 28800 if os.environ.get("LONG") == "1" else 60 if "MESHD_LONG" in os.environ else 3


def saved(save, *arguments, **named):
    file = io.BytesIO()
    save(file, *arguments, **named)
    return file.getvalue()


def texts(folder, suffix, count):
    """Files of different sizes, the same ones each time."""
    found = sorted(path for path in (ROOT / folder).rglob("*" + suffix) if path.stat().st_size < 20_000)
    return [path.read_bytes() for path in found[::max(1, len(found) // count)]]


def parser():
    return texts("tests/conformance", ".mlir", 60)


def front():
    heads = ["GET /a/1?x=%20y&y HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-3, 5-\r\nOrigin: https://app.example.org\r\n\r\n",
             "POST /a/v2/x/y HTTP/1.1\r\nHost: meshd.example.org:80\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
             "PUT / HTTP/1.0\r\nHost: [::1]\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\nExpect: 100-continue\r\n\r\nabc",
             "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-Match: \"a\", W/\"b\"\r\n\r\n"]
    return [head.encode() for head in heads]


def files():
    tensors = json.dumps({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "b": {"dtype": "I8", "shape": [], "data_offsets": [24, 25]},
                          "__metadata__": {"k": "v"}}).encode()
    safetensors = struct.pack("<Q", len(tensors)) + tensors + bytes(25)
    zips = [saved(save, x=np.arange(6, dtype="f4").reshape(2, 3), y=np.array(True)) for save in (np.savez, np.savez_compressed)]
    return [b"\0" + safetensors, *(b"\1" + file for file in zips), *(b"\2" + key for key in (b"0.0", b"c/3/0", b"zarr.json", b".zarray"))]


def documents():
    program = json.dumps({"format": "stablehlo", "text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }",
                          "in_tree": {"x": None}, "names": ["a"]})
    inputs = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [[1.5, 2]]}, {"name": "n", "datatype": "INT8", "shape": [1], "data": [-5]}]}
    binary = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}},
                         {"name": "n", "datatype": "INT8", "shape": [1], "parameters": {"binary_data_size": 1}}], "outputs": [{"name": "y"}]}
    form = ('--B\r\nContent-Disposition: form-data; name="request"\r\nContent-Type: application/json\r\n\r\n{}\r\n'
            '--B\r\nContent-Disposition: form-data; name="x"; filename="x.npy"\r\n\r\nabc\r\n--B--\r\n')
    by_kind = [['{"a": [1, -2.5e3, "\\u00e9\\ud83d\\ude00", null, true, {}], "b": [[0, 1], [2, 3]]}', "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"], [program],
               [base64.b64decode(json.loads(text)["base64"]) for text in texts("tests/artifacts/exports", ".json", 6)],
               ["def f(x, w):\n    y = jnp.tanh(x @ w)\n    for i in range(3):\n        y = y + x[i, ::2].sum()\n    return {'a': y, 'b': (x, 1.5)}\n"],
               [json.dumps(inputs), json.dumps(binary).encode() + bytes(9)], [form], ["x,,y.z", "x.y,*", ""], ["0:3,:", "-1:,::2", "...,1"],
               [saved(np.save, np.arange(6, dtype=dtype).reshape(2, 3)) for dtype in ("f4", "c16", ">i2")]]
    return [bytes([kind]) + (text if isinstance(text, bytes) else text.encode()) for kind, seeds in enumerate(by_kind) for text in seeds]


def main():
    seeds = {"parser_fuzz": parser, "front_fuzz": front, "files_fuzz": files, "documents_fuzz": documents}[TARGET.name]()
    assert seeds, "there are no seeds"
    kept = HERE / "kept" / TARGET.name
    seeds += [path.read_bytes() for path in sorted(kept.glob("*"))]
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, seed in enumerate(seeds):
            names.append(f"{folder}/{number}")
            pathlib.Path(names[-1]).write_bytes(seed)
        done = subprocess.run([TARGET, str(SECONDS), os.environ.get("FUZZ_SEED", "1"), *names], cwd=folder, check=False)
        if done.returncode:
            found = f"/tmp/meshd-{TARGET.name}"
            shutil.copy(f"{folder}/fuzz_last_input", found)
            print(f"ended with {done.returncode}; the input is {found}")
    return done.returncode and 1


sys.exit(main())
