"""Nobody learns what others have: foreign_ids_test.py BINARY SOURCE_FOLDER.

For every place of the contract that takes an id (in a path, a query or a body), another principal's id is answered as one that names
nothing: the same status, headers and body but for the id. With MESHD_LONG=1 also in about the same time."""

import json
import os
import pathlib
import re
import statistics
import sys
import time
import urllib.parse

import yaml

SOURCE = pathlib.Path(sys.argv[2])
del sys.argv[2]
sys.path.insert(0, str(SOURCE / "tests/system"))

from contract_schema import Contract  # noqa: E402
from shared_server import Shared, ok, run  # noqa: E402

CONTRACT = Contract(yaml.safe_load((SOURCE / "openapi/openapi.yaml").read_bytes()))
ID = re.compile(r"^\^(arr|mesh|prog|ses|job|upl|whk)_")
VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}
ADD = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32> }"
MESH = {"axis_names": ["x"], "devices": [0, 1]}

ZARR = {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"}}

# Places whose ids are not looked up, and what is said of all of them alike.
NOT_LOOKED_UP = {
    ("createJob", "session"): 422,  # a body does not name a session beside the path's
    ("listArrays", "session"): 200,  # a filter: nothing matches
    ("listJobs", "program"): 200,
    ("listSessionJobs", "program"): 200,
    ("putJob", "id"): 201,  # makes what it names, for each principal its own
}


def places(schema, path=(), seen=()):
    """(kind of id, path) of every id that a value of the schema may have; recursive schemas once."""
    if "$ref" in schema:
        if schema["$ref"] in seen:
            return
        seen, schema = (*seen, schema["$ref"]), CONTRACT.resolve(schema)
    match = ID.match(schema.get("pattern", ""))
    if match:
        yield match.group(1), path
    if "items" in schema:
        yield from places(schema["items"], (*path, 0), seen)
    for name, inner in schema.get("properties", {}).items():
        yield from places(inner, (*path, name), seen)


def all_places():
    """(method, path, operation, where it stands, its place, kind of id)"""
    for method, path, operation in CONTRACT.operations():
        for parameter in map(CONTRACT.resolve, operation.get("parameters", [])):
            for kind, _ in places(parameter["schema"]):
                yield method, path, operation, parameter["in"], parameter["name"], kind
        body = CONTRACT.resolve(operation.get("requestBody", {})).get("content", {}).get("application/json")
        for kind, place in places(body["schema"]) if body else ():
            yield method, path, operation, "body", "/".join(map(str, place)), kind


def put(document, place, value):
    """Sets the field, making what is not there on the way."""
    top, keys = document, [int(key) if key.isdigit() else key for key in place.split("/")]
    for key, following in zip(keys, keys[1:]):
        if isinstance(key, int):
            document += [[] if isinstance(following, int) else {} for _ in range(key + 1 - len(document))]
            document = document[key]
        else:
            document = document.setdefault(key, [] if isinstance(following, int) else {})
    if place.startswith("program") or place.split("/")[-1] == "array":
        document.clear()  # an id stands alone there
    if place.startswith("parts"):
        del top["values"]  # one of the two
    document[keys[-1]] = value


class Principal:
    """What one of the two has."""

    def __init__(self, shared, token):
        self.shared, self.token = shared, token
        self.mesh = ok(self.ask("POST", "/v1/meshes", MESH if token == "ann" else {"axis_names": ["y"], "devices": [0, 1]}), 201)["id"]
        self.arr = ok(self.ask("POST", f"/v1/arrays?mesh={self.mesh}&spec={'x' if token == 'ann' else 'y'}", VALUE), 201)["id"]
        self.prog = ok(self.ask("POST", "/v1/programs", {"text": ADD + f" // {token}"}), 201)["id"]
        self.ses = ok(self.ask("POST", "/v1/sessions"), 201)["id"]
        run_ = {"program": {"id": self.prog}, "arguments": [[1, 2]]}
        self.job = ok(self.ask("POST", f"/v1/sessions/{self.ses}/jobs", run_, {"Prefer": "respond-async"}), 202)["id"]
        ok(self.ask("POST", f"/v1/sessions/{self.ses}/barrier"))
        self.whk = ok(self.ask("POST", "/v1/webhooks", {"session": self.ses, "url": "https://hooks.invalid/"}), 201)["id"]
        begun = {"Content-Type": "application/octet-stream", "Upload-Complete": "?0"}
        self.upl = ok(self.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=2", b"a", begun), 201)["id"]

    def ask(self, method, path, body=None, headers=None):
        return self.shared.ask(self.token, method, path, body, headers)

    def body(self, operation):
        """A body of the operation that would be taken, with its own ids."""
        run_ = {"program": {"id": self.prog}, "arguments": [{"array": self.arr}]}
        return {
            "run": run_, "createJob": run_, "putJob": run_, "appendInfeed": {"values": [VALUE]}, "createArray": VALUE, "putArrayData": VALUE,
            "putShardData": VALUE, "reshardArray": {"mesh": self.mesh, "spec": []}, "patchMesh": MESH, "enterMesh": {"mesh": self.mesh},
            "assembleArray": {"shape": [2], "mesh": self.mesh, "spec": [], "dtype": "float32"}, "replyToCallback": {"values": []},
            "resolveSharding": {"shape": [2], "mesh": self.mesh, "spec": []}, "compareArrays": {"array": self.arr, "mode": "bits"},
            "explainProgram": {}, "partitionProgram": {}, "lowerProgram": {}, "suggestShardings": {},
            "putModel": {"program": {"id": self.prog}, "arguments": [{"input": "x"}]},
            "createWebhook": {"session": self.ses, "url": "https://hooks.invalid/"}, "infer": {"inputs": []}, "inferVersion": {"inputs": []}, "getRepositoryIndex": {}, "loadModel": {}, "unloadModel": {},
        }.get(operation)


def nobodys(id_):
    """An id like this one that names nothing."""
    return id_[:-4] + "".join("f" if digit != "f" else "0" for digit in id_[-4:])


def request(principal, method, path, operation, where, place, id_):
    """(method, target, body, headers) with `id_` in the place and the principal's own everywhere else."""
    name = operation["operationId"]
    body = json.loads(json.dumps(principal.body(name)))
    headers, query = {"X-Request-Id": "same"}, {}
    for parameter in map(CONTRACT.resolve, operation.get("parameters", [])):
        kind = next((kind for kind, _ in places(parameter["schema"])), None)
        if parameter["in"] == "path":
            own = getattr(principal, kind) if kind else parameter["example"]
            value = id_ if (where, place) == ("path", parameter["name"]) else own
            path = path.replace("{" + parameter["name"] + "}", urllib.parse.quote(str(value)))
        elif (where, place) == (parameter["in"], parameter["name"]):
            query[place] = id_
        elif parameter["in"] == "header" and parameter.get("required"):
            headers[parameter["name"]] = parameter["schema"].get("enum", ["0"])[0]
        elif parameter["in"] == "query" and parameter.get("required"):
            query[parameter["name"]] = parameter["example"]
    if name == "putJob" and where == "body":
        path = path.replace(principal.job, f"job_0192f0c4-7c1e-7b52-9c7a-{time.monotonic_ns() % 16**12:012x}")
    if name == "importArrays":
        head = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        body = len(head).to_bytes(8, "little") + head + bytes(8)
        headers["Content-Type"] = "application/x-safetensors"
    if name in ("uploadArray", "putArrayDataByName"):
        query.update(dtype="uint8", shape="2")
        body, headers["Content-Type"] = b"ab", "application/octet-stream"
    if name == "putZarrNode":
        body = ZARR
    if name == "appendToUpload":
        body, headers["Content-Type"] = b"b", "application/partial-upload"
    if name == "putJob":
        headers["Prefer"] = "wait=30"  # so that both tell the same of it
    if "mesh" in query:
        query["spec"] = "x"
    if where == "body":
        put(body, place, id_)
    return method, path + ("?" + urllib.parse.urlencode(query) if query else ""), body, headers


def seen(answer, id_):
    """What the answer tells: all of it but the id and the time."""
    status, headers, document = answer
    text = document.decode("utf-8", "replace") if isinstance(document, bytes) else json.dumps(document)
    text = re.sub(r'"(created|started|finished|\w+_ms)": ("[^"]*"|[0-9.e-]+)', r'"\1": ""', text.replace(id_, "ID"))
    kept = sorted((name.lower(), value.replace(id_, "ID")) for name, value in headers.items()
                  if name.lower() not in ("date", "content-length", "ratelimit", "etag"))
    return status, kept, text


def test_foreign_ids_are_as_unknown_ones():
    wrong, count, used = [], 0, set()
    with Shared("ann ann\nbob bob\n", "--devices", "4") as shared:
        ann, bob = Principal(shared, "ann"), Principal(shared, "bob")
        # A job under a foreign name is bob's from then on: last.
        for method, path, operation, where, place, kind in sorted(all_places(), key=lambda each: (each[2]["operationId"], each[4]) == ("putJob", "id")):
            name, foreign = operation["operationId"], getattr(ann, kind)
            expected = NOT_LOOKED_UP.get((name, place), 404)
            used.add((name, place))
            answers = [seen(bob.ask(*request(bob, method, path, operation, where, place, id_)), id_)
                       for id_ in (foreign, nobodys(foreign))]
            count += 1
            if answers[0] != answers[1] or answers[0][0] != expected:
                wrong.append(f"{name} {where} {place}, expected {expected}:\n  foreign {answers[0]}\n  unknown {answers[1]}")
        for kind, at in (("mesh", "meshes"), ("arr", "arrays"), ("prog", "programs"), ("ses", "sessions"), ("job", "jobs"), ("upl", "uploads")):
            ok(ann.ask("GET", f"/v1/{at}/{getattr(ann, kind)}"))  # nothing of it was touched
    assert not wrong, f"{len(wrong)} of {count} places:\n" + "\n".join(wrong)
    assert count > 70 and not set(NOT_LOOKED_UP) - used, (count, set(NOT_LOOKED_UP) - used)


def test_foreign_ids_take_the_time_of_unknown_ones():
    if os.environ.get("MESHD_LONG") != "1":
        return
    slow = []
    with Shared("ann ann\nbob bob\n", "--devices", "4") as shared:
        ann = Principal(shared, "ann")
        shared.server.stop()  # what was just made is in memory: others' ids should not be told by what is not
        shared.server.start()
        bob = Principal(shared, "bob")
        for method, path, operation, where, place, kind in all_places():
            if (operation["operationId"], place) in NOT_LOOKED_UP:
                continue
            foreign = getattr(ann, kind)
            times = ([], [])
            for _ in range(200):
                for id_, into in zip((foreign, nobodys(foreign)), times):
                    asked = request(bob, method, path, operation, where, place, id_)
                    start = time.perf_counter()
                    bob.ask(*asked)
                    into.append(time.perf_counter() - start)
            one, other = map(statistics.median, times)
            if abs(one - other) > 0.1 * max(one, other) + 50e-6:
                slow.append(f"{operation['operationId']} {where} {place}: foreign {one * 1e6:.0f} us, unknown {other * 1e6:.0f} us")
    assert not slow, "\n".join(slow)


sys.exit(run(dict(globals())))
