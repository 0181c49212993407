"""Extreme values in every field of every operation of the contract: extremes_test.py BINARY SOURCE_FOLDER.

Never a 5xx that the contract does not name, never a process that is gone, an answer in time and memory that stays. The combinations
are drawn by EXTREMES_SEED (1) so that the test is quick; with MESHD_LONG=1 it takes them all. EXTREMES_PATIENCE multiplies the time that
an answer may take, for slow builds; with it being more than 1 memory is not judged, as sanitizers have a memory of their own."""

import http.client
import json
import os
import pathlib
import random
import signal
import sys
import time

import yaml

from contract_schema import Contract
from extreme_programs import ATTACKS, TEXTS as PROGRAMS
from extreme_values import TEXTS, VALUES, Raw, encode, in_path, leaves, placed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
CONTRACT = Contract(yaml.safe_load((SOURCE / "openapi/openapi.yaml").read_bytes()))
LONG = "MESHD_LONG" in os.environ
SEED = int(os.environ.get("EXTREMES_SEED", "1"))
PATIENCE = float(os.environ.get("EXTREMES_PATIENCE", "1"))
ANSWER_SECONDS = 2 * PATIENCE
TRIES = 3  # an answer that is late while the machine is busy is asked for again
GIVE_UP_SECONDS = 30 * PATIENCE
MEMORY_KIB = 256 << 10
REQUESTS = 3000
# Modest, so that what is large and legal is refused.
OPTIONS = ("--devices", "4", "--memory-limit", str(64 << 20), "--array-memory", str(32 << 20), "--quota", str(16 << 20),
           "--log-level", "err")

ADD = """module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32> } }"""
VALUE = {"dtype": "float32", "shape": [4], "data": [1, 2, 3, 4]}
AXES = {"axes": [{"name": "x", "size": 2}]}
RUN = {"program": {"text": ADD.replace(' sdy.mesh @mesh = <["x"=2]>', "")}, "arguments": [VALUE, VALUE]}
PLACEMENT = {"mesh": {"axes": [{"name": "x", "size": 2}]}, "in_shardings": [{"spec": [["x"]]}, {"spec": [["x"]]}]}
MODEL = {"program": {"format": "numpy", "text": "def f(x): return x * 2"}, "max_batch_size": 4, "outputs": ["y"],
         "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 2]}], "batching": {"preferred_batch_sizes": [2]}, "labels": {"a": "b"}}
INFERENCE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], "outputs": [{"name": "y"}], "parameters": {"priority": 1}}
JOB = "job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b42"
RAW = {"Content-Type": "application/octet-stream"}


class Target:
    """A server with one of each thing that paths and bodies name."""

    def __init__(self, server):
        self.server = server
        self.connection = None
        self.made = {}
        self.make()

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, bytes, seconds); over one connection for as long as the server keeps it."""
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = encode(body)
            headers.setdefault("Content-Type", "application/json")
        fresh = self.connection is None
        if fresh:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=GIVE_UP_SECONDS)
        start = time.monotonic()
        try:
            try:
                self.connection.putrequest(method, path, skip_accept_encoding=True)
                for name, value in headers.items():
                    self.connection.putheader(name, value)
                if body is not None or method in ("POST", "PUT", "PATCH"):
                    self.connection.putheader("Content-Length", str(len(body or b"")))
                self.connection.endheaders()
                if body:
                    self.connection.send(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have answered before it had read everything
            answer = self.connection.getresponse()
            data = b"" if answer.getheader("Content-Type", "").startswith("text/event-stream") else answer.read()
        except (http.client.HTTPException, ConnectionError):
            self.connection.close()
            self.connection = None
            if not fresh and self.server.process.poll() is None:
                return self.ask(method, path, body, headers)
            # An answer that is lost because the body was not read: the client sees the connection end.
            return None, {}, b"", time.monotonic() - start
        seconds = time.monotonic() - start
        if answer.will_close or answer.getheader("Content-Type", "").startswith("text/event-stream"):
            self.connection.close()
            self.connection = None
        return answer.status, answer.headers, data, seconds

    def create(self, path, body, headers=None, method="POST"):
        status, _, data, _ = self.ask(method, path, body, headers)
        assert status in (200, 201), (path, status, data[:500])
        return json.loads(data)["id"]

    def make(self):
        made = self.made
        made["mesh"] = self.create("/v1/meshes", {**AXES, "devices": [0, 1]})
        made["abstract"] = self.create("/v1/meshes", {"axes": [{"name": "x", "size": 1024}, {"name": "y", "size": 1024}]})
        made["none"] = self.create("/v1/meshes", {"axes": [{"name": "x", "size": 0}]})
        made["program"] = self.create("/v1/programs", {"text": ADD})
        made["session"] = self.create("/v1/sessions", {})
        for kind in ("webhook", "upload"):  # only so many may stand
            if kind in made:
                self.ask("DELETE", f"/v1/{kind}s/{made[kind]}")
        made["webhook"] = self.create("/v1/webhooks", {"session": made["session"], "url": "https://hooks.invalid/"})
        made["array"] = self.create("/v1/arrays", VALUE)
        made["upload"] = self.create("/v1/arrays:upload?dtype=uint8&shape=2", b"a", {**RAW, "Upload-Complete": "?0"})
        made["pending"] = self.create("/v1/arrays:assemble",
                                      {"shape": [4], "dtype": "float32", "mesh": made["mesh"], "spec": [["x"]]})
        self.ask("PUT", "/v1/models/m", MODEL)
        self.ask("POST", "/v2/repository/models/m/load", {})
        made["model"] = "m?version=1"
        status, _, data, _ = self.ask("PUT", "/v1/jobs/" + JOB, RUN, {"If-None-Match": "*", "Prefer": "wait=30"})
        assert status in (201, 412), data
        self.ask("POST", f"/v1/sessions/{made['session']}/mesh", {"mesh": made["mesh"]})

    def base(self, operation, path):
        """A request that is right: path parameters, query, headers, body."""
        made = self.made
        ids = {"/v1/sessions": "session", "/v1/arrays": "array", "/v1/meshes": "mesh", "/v1/programs": "program", "/v1/uploads": "upload", "/v1/webhooks": "webhook"}
        captures = {"n": "3" if "zarr" in path else "1", "device": "0", "path": "zarr.json", "name": "a/b"}
        captures["id"] = next((made[kind] for stem, kind in ids.items() if path.startswith(stem + "/")), JOB)
        if path.startswith("/v1/zarr"):
            captures.update({"format": "v3", "path": "z" if ":commit" in path else "z/zarr.json"})
        if operation == "putShardData":
            captures["id"] = made["pending"]
        if "/models" in path:
            captures.update({"name": "m", "version": "1"})
        if "sharedmemory" in path:
            captures["path"] = "status"
        headers, query = {}, {}
        if operation == "putJob":
            headers["If-None-Match"] = "*"
            captures["id"] = "job_0192f0c4-7c1e-7b52-9c7a-" + f"{random.randrange(16**12):012x}"
        if operation == "exportArrays":
            query["id"] = made["array"]
        if operation == "deleteArrays":
            query["prefix"] = "nothing/"
        if operation == "appendToUpload":
            headers.update({"Upload-Offset": "1", "Upload-Complete": "?0", "Content-Type": "application/partial-upload"})
        if operation == "listOutfeed":
            query["queue"] = "q"
        bodies = {
            "run": RUN, "createJob": RUN, "putJob": RUN, "createSession": {"name": "s"}, "appendInfeed": {"values": [VALUE]},
            "replyToCallback": {"values": [VALUE]}, "createArray": VALUE, "putArrayData": VALUE,
            "putShardData": {"dtype": "float32", "shape": [2], "data": [1, 2]},
            "reshardArray": {"mesh": made["mesh"], "spec": [["x"]]}, "createMesh": {**AXES, "devices": [0, 1]},
            "patchMesh": {**AXES, "devices": [0, 1]}, "createProgram": {"text": ADD}, "explainProgram": PLACEMENT,
            "partitionProgram": PLACEMENT, "lowerProgram": PLACEMENT, "suggestShardings": PLACEMENT, "enterMesh": {"mesh": made["mesh"]},
            "assembleArray": {"shape": [4], "dtype": "float32", "mesh": made["mesh"], "spec": [["x"]]},
            "resolveSharding": {"shape": [4, 4], "mesh": made["abstract"], "spec": [["x"]]},
            "compareArrays": {"array": made["array"], "mode": "bits"}, "resolveCall": {"arguments": [1, 2], "donate": [0]},
            "createWebhook": {"session": made["session"], "url": "https://hooks.invalid/"}, "putZarrNode": ZARR, "putModel": MODEL, "infer": INFERENCE, "inferVersion": INFERENCE, "getRepositoryIndex": {"ready": True},
            "loadModel": {"parameters": {"unload_dependents": False}}, "unloadModel": {"parameters": {"unload_dependents": False}},
        }
        return captures, query, headers, bodies.get(operation)

    def resident_kib(self, field):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


ZARR = {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"}}


class Judge:
    """Asks and judges; keeps what is wrong."""

    def __init__(self, target):
        self.target, self.wrong, self.asked = target, [], 0
        self.base_kib = self.most_kib = target.resident_kib("VmRSS")

    def ask(self, what, allowed_501, method, path, body=None, headers=None):
        self.asked += 1
        for attempt in range(TRIES):
            try:
                status, answered, data, seconds = self.target.ask(method, path, body, headers)
            except TimeoutError:
                self.target.connection = None
                status, answered, data, seconds = 0, {}, b"", GIVE_UP_SECONDS
            if self.target.server.process.poll() is not None:
                raise SystemExit(f"FAILED {what}: the process ended with {self.target.server.process.returncode}")
            if seconds <= ANSWER_SECONDS:
                break
        if seconds > ANSWER_SECONDS:
            self.note(what, f"took {seconds:.1f} s, {TRIES} times")
        if status is not None and status >= 500 and not (status == 501 and allowed_501) and not (status == 503 and answered.get("Retry-After")):
            self.note(what, f"{status} {data[:300]!r}")
        # The peak since it was looked at last: what stands now says nothing of what stood while it was answered.
        most = self.target.resident_kib("VmHWM")
        if most > self.most_kib:
            if PATIENCE == 1 and most > self.base_kib + MEMORY_KIB:
                self.note(what, f"takes memory from {self.most_kib >> 10} to {most >> 10} MiB (at rest {self.base_kib >> 10})")
            self.most_kib = most
        return status, answered, data

    def note(self, what, problem):
        self.wrong.append(f"{what}: {problem}")
        print("FAILED", self.wrong[-1], flush=True)

    def clean(self, status, answered):
        """What a request made is taken away again: the next ones find the server as this one did."""
        location = (answered or {}).get("Location") or ""
        known = set(self.target.made.values()) | {JOB}
        if status in (200, 201, 202) and location.startswith("/v1/") and location.rsplit("/", 1)[-1] not in known:
            self.target.ask("DELETE", location)


def cases():
    """(operation, method, path, kind, place, name of the value) of every combination."""
    for method, path, operation in CONTRACT.operations():
        for parameter in map(CONTRACT.resolve, operation.get("parameters", [])):
            for value in TEXTS:
                yield operation, method, path, parameter["in"], parameter["name"], value
        content = CONTRACT.resolve(operation["requestBody"])["content"] if "requestBody" in operation else {}
        if "application/json" in content:
            for place in dict.fromkeys(leaves(CONTRACT, content["application/json"]["schema"])):
                for value in VALUES:
                    yield operation, method, path, "body", place, value


def drawn():
    everything = list(cases())
    if LONG or len(everything) <= REQUESTS:
        return everything
    # Every field keeps some of its values; which, the seed says.
    generator = random.Random(SEED)
    fields = {}
    for case in everything:
        fields.setdefault((case[0]["operationId"], case[3], case[4]), []).append(case)
    share = max(2, REQUESTS // len(fields))
    return [case for group in fields.values() for case in generator.sample(group, min(share, len(group)))]


def request_of(target, operation, path, kind, place, value):
    captures, query, headers, body = target.base(operation["operationId"], path)
    query = {name: in_path(text) for name, text in query.items()}
    captures = {name: in_path(text) for name, text in captures.items()}
    if kind == "path":
        captures[place] = in_path(TEXTS[value])
    elif kind == "query":
        query[place] = in_path(TEXTS[value])
    elif kind == "header":
        headers[place] = TEXTS[value].replace("\0", "\x01")
    else:
        body = placed(body, place, Raw(VALUES[value]))
        if isinstance(body, Raw):
            headers["Content-Type"] = "application/json"
            body = body.text.encode()
    for name, text in captures.items():
        path = path.replace("{" + name + "}", text)
    if query:
        path += "?" + "&".join(f"{name}={text}" for name, text in query.items())
    return path, body, headers


def ask_fields(judge):
    target = judge.target
    for operation, method, path, kind, place, value in drawn():
        name = operation["operationId"]
        if name in ("createSession", "enterMesh", "leaveMesh") and judge.asked % 8 == 0:
            target.ask("DELETE", f"/v1/sessions/{target.made['session']}/mesh")
        target_path, body, headers = request_of(target, operation, path, kind, place, value)
        shown = "/".join(map(str, place)) if isinstance(place, tuple) else place
        # Values that a header cannot carry are refused by the client itself.
        try:
            status, answered, _ = judge.ask(f"{name} {kind} {shown} = {value}", "501" in operation["responses"], method, target_path, body, headers)
        except (ValueError, UnicodeError):
            continue
        judge.clean(status, answered)
        removes = method == "DELETE" or name in ("deleteArrayByPost", "moveArray", "unloadModel", "putShardData", "putArrayData")
        if removes and status is not None and status < 300:
            target.make()


def ask_programs(judge):
    """Texts whose types, meshes and attributes are extreme: stored, explained, partitioned, suggested for and run."""
    for name, text in PROGRAMS.items():
        status, answered, data = judge.ask(f"createProgram {name}", False, "POST", "/v1/programs", {"text": text})
        if status in (200, 201):
            stored = "/v1/programs/" + json.loads(data)["id"]
            for verb in (":explain", ":partition", ":suggest"):
                for placement in ({}, {"mesh": {"axes": [{"name": "x", "size": 2}]}}):
                    judge.ask(f"{verb} {name} {placement}", False, "POST", stored + verb, placement)
            # Some reduce what takes years: the deadline ends them.
            judge.ask(f"run {name}", True, "POST", "/v1/run", {"program": {"text": text}, "arguments": [], "deadline": 0.5})
        judge.clean(status, answered)


def ask_attacks(judge):
    for name, method, path, body, expected in ATTACKS(judge.target.made):
        status, answered, data = judge.ask(f"attack {name}", False, method, path, body)
        if expected:
            code, pointer = expected
            document = json.loads(data) if data else {}
            pointers = [error.get("pointer") for error in document.get("errors", [])]
            if status != 422 or document.get("code") != code or (pointer and pointer not in pointers):
                judge.note(f"attack {name}", f"expected 422 {code} {pointer}, got {status} {data[:300]!r}")
        judge.clean(status, answered)


def main():
    start = time.monotonic()
    with Meshd(BINARY, *OPTIONS) as server:
        judge = Judge(Target(server))
        ask_attacks(judge)
        ask_programs(judge)
        ask_fields(judge)
        status, _, _ = judge.ask("in the end", False, "POST", "/v1/run", RUN)
        if status != 200:
            judge.note("in the end", f"a run is answered with {status}")
        code = server.stop(signal.SIGTERM)
        if code != 0:
            judge.note("in the end", f"SIGTERM ends the server with {code}")
    print(f"seed {SEED}: {judge.asked} requests in {time.monotonic() - start:.0f} s, memory from {judge.base_kib >> 10} to "
          f"{judge.most_kib >> 10} MiB, {len(judge.wrong)} wrong")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
