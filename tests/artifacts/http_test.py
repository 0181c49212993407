#!/usr/bin/env python3
"""Artifacts over HTTP: sent in every way, run, and held to JAX's answers."""
import base64
import json
import pathlib
import sys
import uuid

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "formats"))
from file_formats import RAW, ok, refused, run_tests  # noqa: E402

FORM = "multipart/form-data; boundary=b0unDary"


def cases(folder):
    return {path.stem: json.loads(path.read_text()) for path in sorted((HERE / folder).glob("*.json"))}


EXPORTS = cases("exports")
FIXTURES = cases("fixtures")


def artifact(case):
    return base64.b64decode(case["base64"])


def form(parts):
    """parts: (name, media type, bytes)."""
    out = b""
    for name, media, data in parts:
        out += f'--b0unDary\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\nContent-Type: {media}\r\n\r\n'.encode()
        out += data + b"\r\n"
    return out + b"--b0unDary--\r\n", {"Content-Type": FORM}


def calls_of(case):
    return case["calls"] + case.get("own_calls", [])


def held(answer, call):
    assert len(answer["results"]) == len(call["results"]), (len(answer["results"]), len(call["results"]))
    for got, expected in zip(answer["results"], call["results"]):
        assert (got["dtype"], got["shape"]) == (expected["dtype"], expected["shape"]), (got, expected)
        if got["dtype"] in ("float32", "float64", "float16"):
            a, b = (np.frombuffer(base64.b64decode(each["base64"]), got["dtype"]) for each in (got, expected))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            assert got["base64"] == expected["base64"], (got, expected)


def run(s, program, arguments):
    return s.ask("POST", "/v1/run", {"program": program, "arguments": arguments, "results": {"encoding": "base64"}})


def test_exports_give_jax_answers(s):
    """Each export as a stored program, as base64 in a run, and as a part of a form."""
    for name, case in EXPORTS.items():
        if "refused" in case:
            continue
        stored = ok(s.ask("POST", "/v1/programs", artifact(case), RAW), 201)
        assert calls_of(case), name
        for call in calls_of(case):
            held(ok(run(s, {"id": stored["id"]}, call["arguments"])), call)
            held(ok(run(s, {"base64": case["base64"]}, call["arguments"])), call)
            request = {"program": {"part": "f"}, "arguments": call["arguments"], "results": {"encoding": "base64"}}
            body, headers = form([("request", "application/json", json.dumps(request).encode()), ("f", "application/octet-stream", artifact(case))])
            held(ok(s.ask("POST", "/v1/run", body, headers)), call)


def test_a_form_with_the_same_document_may_bring_another_program(s):
    request = json.dumps({"program": {"part": "f"}, "arguments": [[1, 1, 1]]}).encode()
    found = []
    for name in ("platforms", "platform_not_checked", "platforms"):
        body, headers = form([("request", "application/json", request), ("f", "application/octet-stream", artifact(EXPORTS[name]))])
        found.append(ok(s.ask("POST", "/v1/run", body, headers))["results"][0]["data"][0])
    assert found == [2, 2, 2], found
    other = json.dumps({"program": {"part": "f"}, "arguments": [[1, -1, 2]]}).encode()
    answers = []
    for name in ("loops", "platforms", "loops"):
        body, headers = form([("request", "application/json", other), ("f", "application/octet-stream", artifact(EXPORTS[name]))])
        answers.append(len(ok(s.ask("POST", "/v1/run", body, headers))["results"]))
    assert answers == [2, 1, 2], answers


def test_the_text_of_an_artifact_is_the_same_program(s):
    """What GET shows of it, posted again, has its id: text, format and trees are what a program is."""
    for name, case in EXPORTS.items():
        if "refused" in case:
            continue
        stored = ok(s.ask("POST", "/v1/programs", artifact(case), RAW), 200)
        shown = ok(s.ask("GET", f"/v1/programs/{stored['id']}"))
        assert shown["text"].startswith('"builtin.module"()')
        again = ok(s.ask("POST", "/v1/programs", {key: shown[key] for key in ("text", "in_tree", "out_tree")}), 200)
        assert again["id"] == stored["id"]
    case = FIXTURES["add"] if "add" in FIXTURES else next(iter(FIXTURES.values()))
    bytecode = base64.b64decode(case["bytecode"])
    stored = s.ask("POST", "/v1/programs", bytecode, RAW)[2]
    text = ok(s.ask("GET", f"/v1/programs/{stored['id']}"))["text"]
    assert ok(s.ask("POST", "/v1/programs", text.encode(), {"Content-Type": "text/plain"}), 200)["id"] == stored["id"]


def test_ways_to_send(s):
    case = EXPORTS["trees_and_dropped_arguments"]
    first = ok(s.ask("POST", "/v1/programs?name=layer", artifact(case), RAW))
    body, headers = form([("file", "application/octet-stream", artifact(case))])
    assert ok(s.ask("POST", "/v1/programs", body, headers), 200)["id"] == first["id"]
    assert ok(s.ask("POST", "/v1/programs", {"base64": case["base64"]}), 200)["id"] == first["id"]
    assert ok(s.ask("POST", "/v1/programs", {"format": "stablehlo", "base64": case["base64"]}), 200)["id"] == first["id"]


def test_dropped_arguments(s):
    case = EXPORTS["trees_and_dropped_arguments"]
    stored = ok(s.ask("POST", "/v1/programs", artifact(case), RAW), 200)
    assert stored["in_tree"] == [{"b": "*", "w": "*"}, "*", "-"] and stored["out_tree"] == {"sums": ["*", None, ["*"]], "y": "*"}
    assert len(stored["arguments"]) == 3
    (call,) = case["calls"]
    params, x, unused = call["arguments"]
    for arguments in ([params, x, unused], [params, x, None], [params["b"], params["w"], x], [params["b"], params["w"], x, unused]):
        answer = ok(run(s, {"id": stored["id"]}, arguments))
        held(answer, call)
        assert answer["result_tree"] == {"sums": [0, None, [1]], "y": 2}
    refused(run(s, {"id": stored["id"]}, [params, x]), 422, "Expected [{'b': *, 'w': *}, *, -]")
    explained = s.ask("POST", f"/v1/programs/{stored['id']}:explain", {"mesh": {"axes": [{"name": "x", "size": 2}]},
                                                                       "in_shardings": [None, {"spec": [["x"], []]}, {"spec": [["x"]]}]})
    assert ok(explained)["functions"]


def test_shardings_of_an_export(s):
    stored = ok(s.ask("POST", "/v1/programs", artifact(EXPORTS["shardings"]), RAW), 200)
    assert stored["meshes"] == [{"name": "@mesh", "mesh": '<["x"=2, "y"=4]>'}], stored["meshes"]
    assert stored["arguments"][0]["sharding"]["spec"] == [["x"], []]
    answer = ok(run(s, {"id": stored["id"]}, calls_of(EXPORTS["shardings"])[0]["arguments"]))
    assert answer["shardings"]["results"][0]["spec"] == [["x"], ["y"]]


def test_jobs_keep_their_artifact(s):
    """A job of a session with its program in a form."""
    session = ok(s.ask("POST", "/v1/sessions", {}), 201)["id"]
    case = EXPORTS["loops"]
    (call,) = case["calls"]
    request = {"program": {"part": "f"}, "arguments": call["arguments"], "results": {"encoding": "base64"}}
    body, headers = form([("request", "application/json", json.dumps(request).encode()), ("f", "application/octet-stream", artifact(case))])
    held(ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {**headers, "Idempotency-Key": str(uuid.uuid4())})), call)


def test_refused(s):
    for name, case in EXPORTS.items():
        if "refused" in case:
            refused(s.ask("POST", "/v1/programs", artifact(case), RAW), 422, case["refused"], "exported for tpu and not for cpu")
    refused(s.ask("POST", "/v1/programs", b"PK\x03\x04" + bytes(40), RAW), 422, "unsupported_format", "TorchScript")
    refused(s.ask("POST", "/v1/programs", b"\x01\x02func.func @main() { return }", RAW), 422, "program_syntax", "jax.export")
    ok(s.ask("POST", "/v1/programs", b"func.func @main() { return }", RAW), 201)  # text without its type
    whole = base64.b64decode(FIXTURES[next(iter(FIXTURES))]["bytecode"])
    refused(s.ask("POST", "/v1/programs", whole[:len(whole) // 2], RAW), 422, "program_syntax", "byte ")
    refused(s.ask("POST", "/v1/programs", {"base64": "no base64!"}), 422, "/base64")
    refused(s.ask("POST", "/v1/programs", {"base64": "", "text": ""}), 422, "/base64", "give one")
    refused(s.ask("POST", "/v1/programs", {"name": "n"}), 422, "/text", "is missing")
    refused(run(s, {"part": "f"}, []), 422, "/program/part", "send a form")
    refused(run(s, {"part": "f", "text": ""}, []), 422, "/program/part", "give one")
    body, headers = form([("request", "application/json", b'{"program": {"part": "g"}, "arguments": []}'), ("f", "application/octet-stream", b"x")])
    refused(s.ask("POST", "/v1/run", body, headers), 422, "/program/part", "no part named")
    body, headers = form([("a", "application/octet-stream", b"x"), ("b", "application/octet-stream", b"x")])
    refused(s.ask("POST", "/v1/programs", body, headers), 400, "one part")
    refused(s.ask("POST", "/v1/programs", b"x", {"Content-Type": "image/png"}), 415, "application/octet-stream")


def test_mistakes_in_the_program_show_its_text(s):
    """The client of an artifact has not seen the text whose line a mistake is in."""
    bad = FIXTURES[next(iter(FIXTURES))]
    bytecode = bytearray(base64.b64decode(bad["bytecode"]))
    at = bytecode.find(b"stablehlo\0")
    assert at > 0
    bytecode[at:at + 9] = b"stablehlx"
    got = refused(s.ask("POST", "/v1/programs", bytes(bytecode), RAW), 422)
    assert "stablehlx" in got["detail"], got


run_tests(globals())
