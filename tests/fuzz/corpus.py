"""What the fuzzers begin with: seeds of each format, made here, and the inputs of kept/FORMAT.txt, where there is one: a JSON string a line whose
characters are the bytes, each of which once broke something (`corpus.py FORMAT FILE` adds one) or reaches code that no seed does (keep.py)."""
import base64
import io
import json
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def kept(format):
    path = HERE / "kept" / f"{format}.txt"
    return [json.loads(line).encode("latin-1") for line in path.read_text().splitlines()] if path.exists() else []


def keep(format, one):
    """Writes a line of what is kept."""
    assert format in SEEDS, f"the formats are {', '.join(SEEDS)}"
    (HERE / "kept").mkdir(exist_ok=True)
    with (HERE / "kept" / f"{format}.txt").open("a") as lines:
        lines.write(json.dumps(one.decode("latin-1")) + "\n")


def seeds(format):
    made = SEEDS[format]()
    assert made, "there are no seeds"
    return [one.encode() if isinstance(one, str) else one for one in made]


def saved(save, *arguments, **named):
    file = io.BytesIO()
    save(file, *arguments, **named)
    return file.getvalue()


def texts(folder, suffix, count):
    """Files of different sizes, the same ones each time."""
    found = sorted(path for path in (ROOT / folder).rglob("*" + suffix) if path.stat().st_size < 20_000)
    return [path.read_bytes() for path in found[::max(1, len(found) // count)]]


def requests():
    return ["GET /a/1?x=%20y&y HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-3, 5-\r\nOrigin: https://app.example.org\r\n\r\n",
            "POST /a/v2/x/y HTTP/1.1\r\nHost: meshd.example.org:80\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
            "PUT / HTTP/1.0\r\nHost: [::1]\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\nExpect: 100-continue\r\n\r\nabc",
            "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-Match: \"a\", W/\"b\"\r\n\r\n"]


def safetensors():
    tensors = json.dumps({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "b": {"dtype": "I8", "shape": [], "data_offsets": [24, 25]},
                          "__metadata__": {"k": "v"}}).encode()
    return [struct.pack("<Q", len(tensors)) + tensors + bytes(25)]


def npy():
    return [saved(np.save, np.arange(6, dtype=dtype).reshape(2, 3)) for dtype in ("f4", "c16", ">i2")]


def npz():
    return [saved(save, x=np.arange(6, dtype="f4").reshape(2, 3), y=np.array(True)) for save in (np.savez, np.savez_compressed)]


def stablehlo_texts():
    return texts("tests/conformance", ".mlir", 60)


def numpy_texts():
    """Some of tests/numpy/programs.py, of each kind."""
    sys.path.insert(0, str(ROOT / "tests/numpy"))
    import programs
    return [programs.text_of(source, arguments, options) for _, source, arguments, options in programs.CASES[::20]]


def zarr2():
    return [json.dumps({"zarr_format": 2, "shape": [7, 3], "chunks": [2, 3], "dtype": "<f4", "fill_value": fill, "order": order, "filters": None,
                        "dimension_separator": "/", "compressor": compressor})
            for fill, order, compressor in ((0, "C", None), ("NaN", "F", {"id": "zlib", "level": 1}), (None, "C", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}))]


def zarr3():
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    return [json.dumps({"zarr_format": 3, "node_type": "array", "shape": [7, 3], "data_type": dtype, "fill_value": fill, "attributes": {"a": [1]},
                        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
                        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [bytes_codec, *codecs]})
            for dtype, fill, codecs in (("float32", "0x7fc00000", []), ("int8", -1, [{"name": "gzip", "configuration": {"level": 5}}]),
                                        ("complex64", [0, "Infinity"], [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}]))
            ] + ['{"zarr_format": 3, "node_type": "group", "attributes": {}}']


def inferences():
    inputs = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [[1.5, 2]]}, {"name": "n", "datatype": "INT8", "shape": [1], "data": [-5]}]}
    binary = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}},
                         {"name": "n", "datatype": "INT8", "shape": [1], "parameters": {"binary_data_size": 1}}], "outputs": [{"name": "y"}]}
    return [json.dumps(inputs), json.dumps(binary).encode() + bytes(9)]


def programs():
    return [json.dumps({"format": "stablehlo", "text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }",
                        "in_tree": {"x": None}, "names": ["a"]})]


def forms():
    return ['--B\r\nContent-Disposition: form-data; name="request"\r\nContent-Type: application/json\r\n\r\n{}\r\n'
            '--B\r\nContent-Disposition: form-data; name="x"; filename="x.npy"\r\n\r\nabc\r\n--B--\r\n']


SEEDS = {
    "stablehlo": stablehlo_texts,
    "plan": stablehlo_texts,
    "gradient": stablehlo_texts,
    "trace": numpy_texts,
    "request": requests,
    "safetensors": safetensors,
    "npy": npy,
    "npz": npz,
    "zarr_key": lambda: ["0.0", "c/3/0", "zarr.json", ".zarray"],
    "zarr2": zarr2,
    "zarr2_attributes": lambda: ['{"a": {"b": [1, null]}}'],
    "zarr3": zarr3,
    "zarr_chunk": lambda: [bytes([codec, 2]) + bytes(32) for codec in range(4)],
    "json": lambda: ['{"a": [1, -2.5e3, "\\u00e9\\ud83d\\ude00", null, true, {}], "b": [[0, 1], [2, 3]]}', "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"],
    "program": programs,
    "artifact": lambda: [base64.b64decode(json.loads(text)["base64"]) for text in texts("tests/artifacts/exports", ".json", 6)],
    "numpy": numpy_texts,
    "inference": inferences,
    "form": forms,
    "spec": lambda: ["x,,y.z", "x.y,*", ""],
    "slice": lambda: ["0:3,:", "-1:,::2", "...,1"],
}


if __name__ == "__main__":
    keep(sys.argv[1], pathlib.Path(sys.argv[2]).read_bytes())
