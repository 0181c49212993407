#!/usr/bin/env python3
"""Programs of the suite on a mesh: with sharded arguments, stored arrays and with_sharding_constraint they give what they give on one device; the
answer says the shardings. Also what requests bring beside the text: stored programs, trees, forms of arguments. Usage: sharded_test.py BIN"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import programs  # noqa: E402
from server import Meshd, ok  # noqa: E402
from suite_test import body_of, difference  # noqa: E402

MESH = {"axes": [{"name": "x", "size": 2}, {"name": "y", "size": 2}]}
CONSTRAINED = """
def f(x, w):
    h = with_sharding_constraint(jnp.tanh(x @ w), P('x', None))
    g = lax.with_sharding_constraint(h * 2, P(None, ('x', 'y')))
    return {'sum': g.sum(axis=0), 'h': h, 'sorted': jnp.sort(with_sharding_constraint(g, P('y')), axis=0)}
"""


def rank(value):
    return 1 + rank(value[0]) if isinstance(value, list) else 0


def is_matrix_case(case):
    """Arguments that are lists alone; nothing declared beside them."""
    _, source, arguments, options = case
    return not set(options) - {"twin"} and arguments and all(isinstance(a, list) and rank(a) >= 1 and "NaN" not in str(a) for a in arguments) and "random" not in source


def check_suite(server):
    chosen = [case for case in programs.CASES if is_matrix_case(case)][::6]
    for name, source, arguments, options in chosen:
        body = body_of(source, arguments, options)
        plain = ok(server.ask("POST", "/v1/run", body))["results"]
        specs = [{"spec": [["x"], ["y"]][: rank(a)]} for a in arguments]
        sharded = ok(server.ask("POST", "/v1/run", {**body, "mesh": MESH, "in_shardings": specs}))["results"]
        assert len(plain) == len(sharded), name
        for one, other in zip(plain, sharded):
            wrong = difference(other, one)
            assert wrong is None, f"{name}, sharded: {wrong}"
    return len(chosen)


def check_constraints(server):
    x = [[float(i * 3 + j) / 10 for j in range(4)] for i in range(6)]
    w = [[float(i - j) / 5 for j in range(8)] for i in range(4)]
    body = {"program": {"format": "numpy", "text": CONSTRAINED}, "arguments": [x, w]}
    alone = body_of(CONSTRAINED.replace("lax.with_sharding_constraint", "with_sharding_constraint").replace("with_sharding_constraint(", "(lambda v, s: v)("), [x, w], {})
    plain = ok(server.ask("POST", "/v1/run", alone))
    sharded = ok(server.ask("POST", "/v1/run", {**body, "mesh": MESH}))
    assert sharded["result_tree"] == plain["result_tree"] == {"h": 0, "sorted": 1, "sum": 2}, sharded["result_tree"]
    for one, other in zip(plain["results"], sharded["results"]):
        assert difference(other, one) is None
    assert sharded["shardings"]["results"][0]["spec"][0] == ["x"], sharded["shardings"]
    _, _, refused = server.ask("POST", "/v1/run", {**body, "mesh": {"axes": [{"name": "z", "size": 4}]}})
    assert refused["code"] == "invalid_spec" and "has no axis 'x'" in refused["detail"], refused


def check_stored_arrays(server):
    mesh = ok(server.ask("POST", "/v1/meshes", {"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3]]}), 201)["id"]
    data = [[float(i + j) for j in range(4)] for i in range(7)]
    array = ok(server.ask("POST", f"/v1/arrays?mesh={mesh}&spec=x,y", {"dtype": "float32", "shape": [7, 4], "data": data}), 201)["id"]
    text = "def f(x): return with_sharding_constraint(x * 2, P('x', None)).sum(axis=0)"
    program = ok(server.ask("POST", "/v1/programs", {"format": "numpy", "text": text, "name": "twice"}), 201)
    assert (program["format"], program["parameters"], program["arguments"]) == ("numpy", ["x"], []), program
    run = ok(server.ask("POST", "/v1/run", {"program": {"id": program["id"]}, "arguments": [{"array": array}]}))
    assert run["results"][0]["data"] == [sum(2 * row[j] for row in data) for j in range(4)], run
    part = ok(server.ask("POST", "/v1/run", {"program": {"id": program["id"]}, "arguments": [{"array": array, "slice": "0:4"}], "mesh": MESH, "reshard": True}))
    assert part["results"][0]["data"] == [sum(2 * row[j] for row in data[:4]) for j in range(4)], part
    types = {"arguments": [{"dtype": "float32", "shape": [4096, 512]}], **{"mesh": MESH}}
    text = ok(server.ask("POST", f"/v1/programs/{program['id']}:stablehlo", types)).decode()
    assert "tensor<4096x512xf32>" in text and "sdy.sharding_constraint" in text, text
    explained = ok(server.ask("POST", f"/v1/programs/{program['id']}:explain?stages=parse,plan", types))
    assert explained["devices"] == 4 and len(explained["stages"]) == 2, explained["devices"]
    missing = server.ask("POST", f"/v1/programs/{program['id']}:explain", {})[2]
    assert missing["errors"][0]["pointer"] == "/arguments", missing


def check_arguments(server):
    def run(text, arguments, **more):
        return server.ask("POST", "/v1/run", {"program": {"format": "numpy", "text": text}, "arguments": arguments, **more})

    shaped = ok(run("def f(x): return x.astype(jnp.float32)", [{"dtype": "int8", "data": [[1, 2], [3, 4]]}]))
    assert shaped["results"][0]["shape"] == [2, 2]
    mixed = run("def f(x): return x", [[1, True]])[2]
    assert mixed["errors"][0]["pointer"] == "/arguments/0/1", mixed
    uneven = run("def f(x): return x", [[[1, 2], [3]]])[2]
    assert "a list of 2" in uneven["detail"], uneven
    large = run("def f(x): return x", [4_000_000_000])[2]
    assert "int32" in large["detail"], large
    unknown = run("def f(x): return x", [1], static={"n": 2})[2]
    assert unknown["errors"][0]["pointer"] == "/static/n", unknown
    tree = server.ask("POST", "/v1/programs", {"format": "numpy", "text": "def f(x): return x", "in_tree": ["*"]})[2]
    assert "takes and gives trees as they are" in tree["detail"], tree
    named = ok(run("def f(x, y): return x - y", [5], keywords={"y": 3}))
    assert named["results"][0]["data"] == 2
    log = ok(run("def f(x):\n    log('x is {}', x)\n    return x", [5], callbacks={"0": {"effect": "print", "name": "mine"}}))["effects"]
    assert [(e["effect"], e["name"]) for e in log] == [("print", "mine")], log


def main():
    with Meshd(sys.argv[1]) as server:
        count = check_suite(server)
        check_constraints(server)
        check_stored_arrays(server)
        check_arguments(server)
    print(f"{count} programs on a mesh as on one device")


if __name__ == "__main__":
    main()
