#!/usr/bin/env python3
"""Holds the gradients that a built meshd makes of programs to JAX's: check_gradients.py BINARY [--update].

gradients/ has JAX's answers (make/gradients.py). A case that is neither right nor in gradients/refused.txt is an error, and so is one of
that list that is not refused by name; --update writes the list anew.
"""
import argparse
import concurrent.futures
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "system"), str(HERE)]
from run import difference  # noqa: E402
from server import Meshd  # noqa: E402


def judge(server, path):
    """(name, sentence): the sentence is empty where the gradients are right, and begins with REFUSED where there are none."""
    wanted = json.loads(path.read_text())
    text = wanted.get("text") or (HERE / (wanted["case"] + ".mlir")).read_text()
    arguments = wanted.get("values") or json.loads((HERE / (wanted["case"] + ".json")).read_text())["arguments"]
    status, _, program = server.ask("POST", "/v1/programs", {"text": text})
    assert status in (200, 201), (path, program)
    status, _, made = server.ask("POST", f"/v1/programs/{program['id']}:grad",
                                 {"arguments": wanted["arguments"], "results": wanted["results"], "cotangents": True})
    if status == 422 and made["code"] in ("unsupported_op", "unsupported_type"):
        return wanted["case"], "REFUSED " + made["detail"]
    if status not in (200, 201):
        return wanted["case"], f"{status} {made}"
    status, _, answer = server.ask("POST", "/v1/run", {"program": {"id": made["id"]}, "arguments": arguments + wanted["cotangents"],
                                                       "results": {"encoding": "base64"}})
    if status != 200:
        return wanted["case"], f"{status} {answer['detail']}"
    sentences = []
    for i, (expected, got) in enumerate(zip(wanted["gradients"], answer["results"], strict=True)):
        sentence = difference(expected["value"], got, expected["compare"])
        if sentence:
            sentences.append(f"argument {wanted['arguments'][i]}: {sentence}")
    return wanted["case"], "; ".join(sentences)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    paths = sorted((HERE / "gradients").glob("*/*.json"))
    listed = HERE / "gradients" / "refused.txt"
    with Meshd(options.binary) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        outcome = dict(pool.map(lambda path: judge(server, path), paths))
        assert server.process.poll() is None, "the server ended"
    refused = sorted(name for name, sentence in outcome.items() if sentence.startswith("REFUSED"))
    if options.update:
        listed.write_text("".join(f"{name}\n" for name in refused))
    known = set(listed.read_text().split())
    wrong = {name: sentence for name, sentence in outcome.items()
             if (sentence and not sentence.startswith("REFUSED")) or (sentence.startswith("REFUSED") and name not in known)
             or (not sentence and name in known)}
    for name, sentence in sorted(wrong.items()):
        print(f"{name}: {sentence or 'is right, and listed as refused'}")
    print(f"{len(outcome) - len(refused) - len(wrong)} gradients are JAX's, {len(refused)} are refused by name, {len(wrong)} are wrong")
    return 1 if wrong or not outcome else 0


if __name__ == "__main__":
    sys.exit(main())
