#!/usr/bin/env python3
"""The program of one device is the same program: what :partition answers parses, runs on the same global arguments and gives the same
results. Every conformance program that passes, as it is, and one case of every JAX operation under random legal shardings on meshes
of 2, 4, 2x2, 8 and 2x2x2, uneven ones included. The run of the program itself is the measure. Every kind of composite has to appear.

partition_text_test.py BINARY [WORD]
"""
import base64
import json
import pathlib
import re
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
CONFORMANCE = HERE.parent / "conformance"
sys.path.insert(0, str(HERE.parent / "system"))
sys.path.insert(0, str(CONFORMANCE))
import run as conformance  # noqa: E402
from server import Meshd  # noqa: E402

SEEDS = ("1", "2")
# Partial sums come in another order where the text gathers what the engine reads in place.
RULE = {"rtol": 1e-4, "atol": 1e-5}
COMPOSITES = {f"meshd.{name}" for name in ("mask", "reshard", "halo_exchange", "all_reduce", "iota", "constant", "scatter",
                                           "dynamic_update_slice", "rng_bit_generator", "select_and_scatter")}
# No conformance case has random bits that are sharded.
RANDOM_BITS = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<2xui64>) -> (tensor<2xui64>, tensor<10x6xui32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0:2 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<10x6xui32>)
  return %0#0, %0#1 : tensor<2xui64>, tensor<10x6xui32>
}
"""


def cases():
    listed = (CONFORMANCE / "passing/cases.txt").read_text().split()
    one_of_each = {}
    for name in listed:
        folder, operation = name.split("/")[:2]
        if folder == "programs":
            yield name, [None]
        elif one_of_each.setdefault(operation, name) == name:
            yield name, SEEDS


def requests(word):
    """Where, the text, and a run of it under its shardings."""
    for name, seeds in cases():
        if word not in name:
            continue
        path = CONFORMANCE / (name + ".json")
        case, text = json.loads(path.read_text()), path.with_suffix(".mlir").read_text()
        for seed in seeds:
            request = conformance.request_of(case, text)
            request.pop("session", None)
            if seed is not None:
                request = conformance.scatter(case, request, f"{seed}{name}")
            if request is not None:
                yield f"{name} seed {seed}", text, request
    state = base64.b64encode(bytes(range(16))).decode()
    yield "random bits", RANDOM_BITS, {"program": {"text": RANDOM_BITS},
                                       "arguments": [{"dtype": "uint64", "shape": [2], "base64": state}]}


def main():
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    tried, wrong, composites = 0, [], set()
    with Meshd(sys.argv[1], "--devices", "8") as meshd:
        server = conformance.Server(meshd.url, 120)
        for where, text, request in requests(word):
            request["results"] = {"encoding": "base64"}
            request["donate"] = []
            status, whole = server.post("/v1/run", request)
            if status != 200:
                continue  # held by conformance_passing
            tried += 1
            program = server.post("/v1/programs", {"text": text})[1]["id"]
            placed = {key: request[key] for key in ("mesh", "in_shardings", "out_shardings") if key in request}
            shapes = [argument["shape"] for argument in request["arguments"]]
            status, local = server.post(f"/v1/programs/{program}:partition?format=json", {**placed, "shapes": shapes})
            if status != 200:
                wrong.append(f"{where}: HTTP {status}: {local.get('detail')}")
                continue
            composites |= set(re.findall(r"meshd\.\w+", local["text"]))
            again = {key: value for key, value in request.items() if key not in placed}
            status, got = server.post("/v1/run", {**again, "program": {"text": local["text"]}})
            if status != 200:
                wrong.append(f"{where}: runs again with HTTP {status}: {got.get('detail')}")
                continue
            told = [[(e["name"], e["ordered"]) for e in answer.get("effects", [])] for answer in (whole, got)]
            if sorted(told[0]) != sorted(told[1]) or [e for e in told[0] if e[1]] != [e for e in told[1] if e[1]]:
                wrong.append(f"{where}: effects are {told[1]}, expected {told[0]}"[:300])
            for number, (expected, have) in enumerate(zip(whole["results"], got["results"])):
                floating = expected["dtype"].startswith(("float", "bfloat", "complex"))
                rule = RULE if floating else {"exact": True}
                if expected["dtype"] in ("float16", "bfloat16") or expected["dtype"].startswith("float8"):
                    rule = {"rtol": 0.05, "atol": 0.05}
                problem = conformance.difference(expected, have, rule)
                if problem:
                    wrong.append(f"{where}: result {number}: {problem}")
    if not word and composites != COMPOSITES:
        wrong.append(f"composites are {sorted(composites)}, expected {sorted(COMPOSITES)}")
    for line in wrong[:20]:
        print("WRONG", line)
    print(f"{tried} programs were partitioned, {len(wrong)} are wrong")
    return 1 if wrong or (not word and tried < 200) else 0


sys.exit(main())
