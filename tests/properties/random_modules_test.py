#!/usr/bin/env python3
"""Sharded equals unsharded, for random modules: calls of shared functions, loops, branches, constraints and annotations of all kinds
(the generator of tests/conformance/make/propagation_random.py, which compares the shardings of such modules with Shardy's). Each module
runs over its mesh, and over one whose axes have size one. What a manual computation gives depends on its mesh, so modules with one are
left out, and so are those that name parts of axes.

random_modules_test.py BINARY [--seed 1] [--count 150]
"""
import argparse
import base64
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
sys.path.insert(0, str(HERE.parent / "conformance/make"))
from propagation_random_nested import Program  # noqa: E402
from random_choices import Choices  # noqa: E402
from server import Meshd  # noqa: E402

DTYPES = {"float32": "<f4", "int32": "<i4"}
# Of a matrix that is not positive definite nothing is said.
LEFT_OUT = re.compile(r'manual_computation|":\(|cholesky')


def arguments_of(text, seed):
    """Small numbers for every argument of @main; integers are indices."""
    numbers = np.random.default_rng(seed)
    for dims, dtype in re.findall(r"%arg\d+: tensor<((?:\d+x)*)(\w+)>", re.search(r"func.func @main\((.*?)\) ->", text)[1]):
        shape = [int(d) for d in dims.split("x")[:-1]]
        value = numbers.uniform(-0.7, 0.7, shape) if dtype == "f32" else numbers.integers(0, 3, shape)
        name = "float32" if dtype == "f32" else "int32"
        yield {"dtype": name, "shape": shape, "base64": base64.b64encode(np.asarray(value, DTYPES[name]).tobytes()).decode()}


def value_of(result):
    return np.frombuffer(base64.b64decode(result["base64"]), DTYPES[result["dtype"]]).reshape(result["shape"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    options = parser.parse_args()
    tried, wrong = 0, []
    with Meshd(options.binary, "--devices", "16") as server:
        for seed in range(options.seed, options.seed + options.count):
            text = Program(Choices(seed)).text()
            if LEFT_OUT.search(text):
                continue
            given, answers = list(arguments_of(text, seed)), []
            for module in (text, re.sub(r'("[xyz]")=\d+', r"\1=1", text)):
                body = {"program": {"text": module}, "arguments": given, "results": {"encoding": "base64"}}
                status, _, answer = server.ask("POST", "/v1/run", body)
                if status != 200:
                    wrong.append(f"seed {seed}: HTTP {status}: {answer.get('detail')}")
                    break
                answers.append([value_of(result) for result in answer["results"]])
            tried += 1
            if len(answers) == 2:
                for number, (sharded, whole) in enumerate(zip(*answers, strict=True)):
                    if not np.allclose(sharded, whole, rtol=1e-3, atol=1e-3, equal_nan=True):
                        wrong.append(f"seed {seed}: result {number} differs by {np.abs(sharded - whole).max()}")
    print("\n".join(wrong[:20]))
    print(f"{tried} random modules, {len(wrong)} differ")
    return 1 if wrong or not tried else 0


sys.exit(main())
