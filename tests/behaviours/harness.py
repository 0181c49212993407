"""What the tests of the behaviours share: a running meshd, requests in one line, programs that many rows use.

A test is a function `behaviour_ID_what_it_holds(s)` in one of the *_rows.py files; ID is a row of rows.json. `s` is the running
server. `@own_server("--devices", "8")` gives a test a server of its own, with those options."""
import json
import pathlib
import struct
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from server import Meshd, ok, refused_with as refused  # noqa: E402, F401

RAW = {"Content-Type": "application/octet-stream"}
TEXT = {"Content-Type": "text/plain"}
ASYNC = {"Prefer": "respond-async"}
DEVICES = ["--devices", "8"]


def own_server(*arguments):
    """The test gets the binary and starts servers as it likes, with these options by default."""
    def mark(function):
        function.own_server = list(arguments)
        return function
    return mark


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def mesh(s, names, devices, **more):
    """Id of a mesh, new or known."""
    status, _, document = s.ask("POST", "/v1/meshes", {"axis_names": names, "devices": devices, **more})
    assert status in (200, 201), document
    return document["id"]


def grid(*shape, first=0):
    """Device ids first, first + 1, ... nested to the shape."""
    if len(shape) == 1:
        return list(range(first, first + shape[0]))
    inner = 1
    for size in shape[1:]:
        inner *= size
    return [grid(*shape[1:], first=first + i * inner) for i in range(shape[0])]


def upload(s, values, shape, mesh_id=None, spec=None, dtype="float32", **query):
    """Document of a new array; `values` numbers in row-major order."""
    code = {"float32": "f", "int32": "i", "uint32": "I", "float64": "d", "int8": "b"}[dtype]
    path = f"/v1/arrays?dtype={dtype}&shape=" + ",".join(map(str, shape))
    if mesh_id is not None:
        path += f"&mesh={mesh_id}"
    if spec is not None:
        path += f"&spec={spec}"
    for name, value in query.items():
        path += f"&{name}={value}"
    return ok(s.ask("POST", path, struct.pack(f"<{len(values)}{code}", *values), RAW), 201)


def shards(s, array_id):
    return ok(s.ask("GET", f"/v1/arrays/{array_id}/shards"))["items"]


def data(s, array_id, query=""):
    return ok(s.ask("GET", f"/v1/arrays/{array_id}/data?format=json{query}"))["data"]


def run(s, program, arguments, status=200, **more):
    return ok(s.ask("POST", "/v1/run", {"program": {"text": program}, "arguments": arguments, **more}), status)


def main(rows):
    """Runs the tests of a module: MODULE.py BINARY [words that names must have]."""
    binary, words = sys.argv[1], sys.argv[2:]
    tests = [f for name, f in rows.items() if name.startswith("behaviour_") and all(word in name for word in words)]
    failed = []
    with Meshd(binary, *DEVICES) as server:
        for test in tests:
            try:
                if hasattr(test, "own_server"):
                    with Meshd(binary, *(test.own_server or DEVICES)) as own:
                        test(own)
                else:
                    test(server)
            except Exception:
                failed.append(test.__name__)
                print(f"FAILED {test.__name__}")
                traceback.print_exc()
    print(f"{len(tests) - len(failed)} behaviours hold, {len(failed)} do not {' '.join(failed)}")
    sys.exit(1 if failed else 0)
