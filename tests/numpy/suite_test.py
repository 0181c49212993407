#!/usr/bin/env python3
"""The programs of programs.py over HTTP: each gives what JAX gave (answers.json), its StableHLO text posted again gives the same, and what is
refused is refused by name with its place. Usage: suite_test.py BIN [NUMBER...]"""
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import programs  # noqa: E402
from server import Meshd  # noqa: E402

# As tests/conformance: relative and absolute, by the type of the result.
TOLERANCE = {"float32": 2e-5, "complex64": 5e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "float64": 1e-12}


def flat(data):
    return [x for item in data for x in flat(item)] if isinstance(data, list) else [data]


def number(x):
    return float(x) if isinstance(x, str) else x


def elements(result):
    """All elements in row-major order; both parts of complex ones."""
    return flat(result["data"])


def is_close(got, want, tolerance, scale):
    got, want = number(got), number(want)
    if isinstance(want, float) and math.isnan(want):
        return isinstance(got, float) and math.isnan(got)
    return got == want or abs(got - want) <= tolerance * max(scale, abs(want))


def difference(got, want):
    """What differs between a result and JAX's answer; None: nothing."""
    if (got["dtype"], got["shape"]) != (want["dtype"], want["shape"]):
        return f"is {got['dtype']}{got['shape']}, JAX gives {want['dtype']}{want['shape']}"
    tolerance = TOLERANCE.get(want["dtype"], 0)
    mine, theirs = elements(got), elements(want)
    if len(mine) != len(theirs):
        return f"has {len(mine)} elements, JAX gives {len(theirs)}"
    sizes = [abs(number(x)) for x in theirs if not isinstance(x, bool)]
    scale = max([1e-3, *(x for x in sizes if math.isfinite(x))]) if tolerance else 0
    for x, y in zip(mine, theirs):
        if not is_close(x, y, tolerance, scale):
            return f"is {mine[:12]}, JAX gives {theirs[:12]}"
    return None


def body_of(source, arguments, options):
    body = {"program": {"format": "numpy", "text": programs.text_of(source, arguments, options)}, "arguments": arguments}
    for field in ("static", "keywords"):
        if field in options:
            body[field] = options[field]
    return body


def check_refused(name, status, answer, options):
    if status != 422 and status != 400:
        return f"{name}: status {status}, expected a refusal: {str(answer)[:200]}"
    if answer["code"] != options["refused"] or options["says"] not in answer["detail"]:
        return f"{name}: expected {options['refused']} with {options['says']!r}, got {answer['code']}: {answer['detail']}"
    place = answer["errors"][0]
    if place.get("pointer") != "/program/text" or place.get("line", 0) < 1 or place.get("column", 0) < 1:
        return f"{name}: no place in {answer}"
    return None


def check(server, answers, number, with_text):
    name, source, arguments, options = programs.CASES[number]
    body = body_of(source, arguments, options)
    status, _, answer = server.ask("POST", "/v1/run", body)
    if "refused" in options:
        return check_refused(name, status, answer, options)
    if status != 200:
        return f"{name}: status {status}: {answer.get('detail')}"
    want = answers[str(number)]["results"]
    if len(want) != len(answer["results"]):
        return f"{name}: {len(answer['results'])} results, JAX gives {len(want)}"
    for got, theirs in zip(answer["results"], want):
        wrong = difference(got, theirs)
        if wrong:
            return f"{name}: {wrong}"
    logs = [effect["name"] for effect in answer["effects"]]
    if logs != options.get("logs", []):
        return f"{name}: logged {logs}, expected {options.get('logs', [])}"
    if "logged" in options:
        values = [[value["data"] for value in effect["values"]] for effect in answer["effects"]]
        if values != options["logged"]:
            return f"{name}: logged {values}, expected {options['logged']}"
    return check_text(server, name, body, answer) if with_text else None


def bound(value):
    """The type of an argument where its value need not be sent."""
    return value


def check_text(server, name, body, answer):
    """The StableHLO text of the program, posted with the same arguments."""
    program = server.ask("POST", "/v1/programs", body["program"])[2]["id"]
    placed = {key: body[key] for key in ("arguments", "static", "keywords") if key in body}
    status, _, text = server.ask("POST", f"/v1/programs/{program}:stablehlo", placed)
    if status != 200:
        return f"{name}: :stablehlo answers {status}: {text}"
    status, _, again = server.ask("POST", "/v1/run", {"program": {"text": text.decode()}, "arguments": leaves(body)})
    if status != 200:
        return f"{name}: its StableHLO text is refused: {again}"
    if [result["data"] for result in again["results"]] != [result["data"] for result in answer["results"]]:
        return f"{name}: its StableHLO text gives other results"
    return None


def leaves(body):
    """Arguments one by one, as the text takes them: by keys of dicts in order."""
    out = []

    def add(value):
        if isinstance(value, dict) and "data" not in value:
            for key in sorted(value):
                add(value[key])
        else:
            out.append(value)

    for value in [*body["arguments"], *body.get("keywords", {}).values()]:
        add(value)
    return out


def main():
    answers = json.loads((HERE / "answers.json").read_text())
    chosen = [int(x) for x in sys.argv[2:]] or range(len(programs.CASES))
    wrong = []
    with Meshd(sys.argv[1]) as server:
        for i in chosen:
            # Declared static values are no arguments of the text.
            with_text = i % 5 == 0 and "static_argnames" not in programs.CASES[i][1]
            problem = check(server, answers, i, with_text)
            if problem:
                wrong.append(f"{i} {problem}")
    print("\n".join(wrong))
    assert not wrong, f"{len(wrong)} of {len(programs.CASES)} programs"
    print(f"{len(answers)} programs as JAX, {sum('refused' in case[3] for case in programs.CASES)} refused by name")


if __name__ == "__main__":
    main()
