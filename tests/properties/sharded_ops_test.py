#!/usr/bin/env python3
"""Sharded equals unsharded: every case of tests/cases/ops and one conformance case of every JAX operation (of those with windows all
that are told apart by their attributes), every dimension of every argument and of every result, cut over meshes of 2, 4, 2x2, 8 and 2x2x2, whether it divides or not. The unsharded answer is held to the results that the case lists, and is
the measure of the sharded ones: the same bits, but for the ops of ADDED, whose floating results are held to the rule that the case has for them.
Cases with a mesh of their own run over that one alone.

sharded_ops_test.py BINARY
"""
import base64
import http.client
import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
sys.path.insert(0, str(HERE.parent / "conformance"))
from run import difference  # noqa: E402
from server import Meshd  # noqa: E402

MESHES = {"2": [2], "4": [4], "2x2": [2, 2], "8": [8], "2x2x2": [2, 2, 2]}
# Products and sums over a dimension that may be cut: floating terms are then added in another order. Names of cases of cases/ops, and of
# operations of JAX.
ADDED = {"batch_norm_grad", "batch_norm_training", "convolution", "convolution_batch_groups", "convolution_by_weights", "conv_general_dilated",
         "dot_general", "reduce_prod", "reduce_sum"}
WINDOWS = ("conv_general_dilated", "reduce_window_max", "select_and_scatter_add", "select_and_gather_add", "cumsum")


def in_base64(value):
    """A value of a case file as the server is asked to give it."""
    if "base64" in value:
        return value
    flat = np.array(value["data"], dtype=object).ravel() if not value["dtype"].startswith("complex") else np.array(
        [complex(*map(float, pair)) for pair in np.array(value["data"], dtype=object).reshape(-1, 2)], dtype=object)
    dtype = np.dtype("uint8" if value["dtype"] == "bool" else value["dtype"])
    numbers = np.array([dtype.type(float(v) if dtype.kind == "f" else int(v) if dtype.kind in "iu" else v) for v in flat], dtype)
    return {"dtype": value["dtype"], "shape": value["shape"], "base64": base64.b64encode(numbers.tobytes()).decode()}


def programs():
    """(name of the case, of its operation, text, arguments, results)"""
    for path in sorted((HERE.parent / "cases/ops").glob("*.mlir")):
        text = path.read_text()
        arguments = [json.loads(line.split(" ", 2)[2]) for line in text.splitlines() if line.startswith("// argument ")]
        results = [json.loads(line.split(" ", 2)[2]) for line in text.splitlines() if line.startswith("// result ")]
        yield path.stem, path.stem, text, arguments, results
    passing = set((HERE.parent / "conformance/passing/cases.txt").read_text().split())
    for folder in sorted((HERE.parent / "conformance/ops").iterdir()):
        for path in sorted(folder.glob("*.json")):
            name = f"ops/{folder.name}/{path.stem}"
            if name in passing:
                case = json.loads(path.read_text())
                yield name, folder.name, path.with_suffix(".mlir").read_text(), case["arguments"], case["results"]
                if folder.name not in WINDOWS:
                    break


def cuts(axes):
    """Ways to cut one dimension with a mesh: each axis alone, all of them together."""
    yield from ([axis] for axis in axes)
    if len(axes) > 1:
        yield axes
        yield axes[::-1]


def main():
    tried, wrong = 0, []
    with Meshd(sys.argv[1], "--devices", "8") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def run(request):
            connection.request("POST", "/v1/run", json.dumps(request), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        for name, operation, text, arguments, results in programs():
            request = {"program": {"text": text}, "arguments": arguments, "results": {"encoding": "base64"}}
            status, whole = run(request)
            if status != 200:
                wrong.append(f"{name}: {whole.get('detail')}")
                continue
            for number, (expected, have) in enumerate(zip(results, whole["results"], strict=True)):
                problem = difference(in_base64(expected["value"]), have, expected["compare"])
                if problem:
                    wrong.append(f"{name}: unsharded result {number}: {problem}")
            if "sdy.mesh" in text:
                continue  # brings its own mesh, over which it ran
            rules = [r["compare"] if operation in ADDED else {"exact": True} for r in results]
            places = [("in_shardings", i, len(a["shape"])) for i, a in enumerate(arguments)]
            places += [("out_shardings", i, len(r["shape"])) for i, r in enumerate(whole["results"])]
            for mesh_name, sizes in MESHES.items():
                axes = ["x", "y", "z"][:len(sizes)]
                for field, position, rank in places:
                    for dim in range(rank):
                        for cut in cuts(axes):
                            spec = [[] for _ in range(rank)]
                            spec[dim] = cut
                            status, got = run({**request, "mesh": {"axes": [{"name": a, "size": s} for a, s in zip(axes, sizes)]},
                                               field: [None] * position + [{"spec": spec}]})
                            tried += 1
                            where = f"{name}: {field}[{position}] dimension {dim} over {cut} of {mesh_name}"
                            if status != 200:
                                wrong.append(f"{where}: HTTP {status}: {got.get('detail')}")
                                continue
                            for number, (expected, have, rule) in enumerate(zip(whole["results"], got["results"], rules, strict=True)):
                                problem = difference(expected, have, rule)
                                if problem:
                                    wrong.append(f"{where}: result {number}: {problem}")
    for line in wrong[:20]:
        print("WRONG", line)
    print(f"{tried} sharded runs, {len(wrong)} differ from the unsharded ones")
    return 1 if wrong or tried < 1000 else 0


sys.exit(main())
