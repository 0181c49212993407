#!/usr/bin/env python3
"""Stories over HTTP against the built binary: what users do with meshes, arrays, programs, sessions and jobs, and what they get wrong."""
import http.client
import json
import struct
import sys
import threading
import time
import xml.dom.minidom

import numpy as np

from server import LOG, SPIN, ok, run_stories, until

TEXT = {"Content-Type": "text/plain"}
RAW = {"Content-Type": "application/octet-stream"}
ADD = "func.func @main(%a: tensor<8x2xf32>, %b: tensor<8x2xf32>) -> tensor<8x2xf32> { %0 = stablehlo.add %a, %b : tensor<8x2xf32> return %0 : tensor<8x2xf32> }"
DOUBLE_DONATED = "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> { %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }"
MESH = {"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3], [4, 5], [6, 7]]}


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def meshes_are_interned(s):
    first = ok(s.ask("POST", "/v1/meshes", MESH), 201)
    assert ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"] == first["id"]
    assert first["axes"] == [{"name": "x", "size": 4}, {"name": "y", "size": 2}] and first["device_ids"] == list(range(8))
    assert ok(s.ask("POST", "/v1/meshes", first), 200)["id"] == first["id"], "a document can be posted back"
    assert ok(s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 4096}]}), 201)["is_abstract"]
    swapped = ok(s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [1, 0]}), 201)
    assert swapped["id"] != ok(s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1]}), 201)["id"]
    assert s.ask("GET", f"/v1/meshes/{first['id']}?view=text")[2].strip() == b"Mesh('x': 4, 'y': 2)"


def wrong_meshes_say_everything_at_once(s):
    for body, words in (({"axis_names": ["x"], "devices": [[0, 1]]}, "devices.ndim == 2"), ({"axis_names": ["x"], "devices": [[0, 1], [2]]}, "nested"),
                        ({"axis_names": ["x", "x"], "devices": [[0]]}, "`x`"), ({"axis_names": ["x"], "devices": [99]}, "no device 99"),
                        ({"axis_names": ["x"], "devices": [0, 0]}, "named twice"), ({"axis_name": ["x"], "devices": [0]}, "did you mean")):
        problem = ok(s.ask("POST", "/v1/meshes", body), 422)
        assert problem["code"] == "invalid_mesh" and words in json.dumps(problem), problem


def arrays_lie_as_their_spec_says(s):
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    data = floats(range(16))
    array = ok(s.ask("POST", f"/v1/arrays?dtype=float32&shape=8,2&mesh={mesh}&spec=x,y", data, RAW), 201)
    assert array["shard_shape"] == [2, 1] and array["sharding"] == {"spec": [["x"], ["y"]]} and array["committed"]
    shards = ok(s.ask("GET", f"/v1/arrays/{array['id']}/shards"), 200)["items"]
    assert [shard["index"] for shard in shards][1] == [[0, 2], [1, 2]] and shards[7]["index"] == [[6, 8], [1, 2]]
    assert ok(s.ask("GET", f"/v1/arrays/{array['id']}/data"), 200) == data
    assert ok(s.ask("GET", f"/v1/arrays/{array['id']}/shards/7"), 200) == floats([13, 15])
    assert ok(s.ask("GET", f"/v1/arrays/{array['id']}/data?format=json&slice=6:,1"), 200)["data"] == [[13.0], [15.0]]
    status, headers, part = s.ask("GET", f"/v1/arrays/{array['id']}/data", headers={"Range": "bytes=4-11"})
    assert status == 206 and part == data[4:12] and headers["Content-Range"] == "bytes 4-11/64"
    assert s.ask("GET", f"/v1/arrays/{array['id']}/data", headers={"Range": "bytes=64-"})[0] == 416
    npy = ok(s.ask("GET", f"/v1/arrays/{array['id']}/data?format=npy"), 200)
    again = ok(s.ask("POST", f"/v1/arrays?mesh={mesh}&spec=y,x", npy, {"Content-Type": "application/x-npy"}), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{again['id']}/data"), 200) == data
    moved = ok(s.ask("POST", f"/v1/arrays/{again['id']}:reshard", {"mesh": mesh, "spec": [["y", "x"], []]}), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{moved['id']}/shards"), 200)["items"][1]["index"] == [[4, 5], [0, 2]]
    assert ok(s.ask("GET", f"/v1/arrays/{moved['id']}/data"), 200) == data
    ok(s.ask("DELETE", f"/v1/arrays/{array['id']}"), 204)
    assert s.ask("GET", f"/v1/arrays/{array['id']}")[0] == 404 and s.ask("GET", f"/v1/arrays/{array['id']}/data")[0] == 404


def uneven_and_empty_arrays(s):
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    array = ok(s.ask("POST", f"/v1/arrays?dtype=int32&shape=7,2&mesh={mesh}&spec=x,", struct.pack("<14i", *range(14)), RAW), 201)
    assert [shard["shape"][0] for shard in ok(s.ask("GET", f"/v1/arrays/{array['id']}/shards"), 200)["items"]] == [2, 2, 2, 2, 2, 2, 1, 1]
    assert struct.unpack("<14i", ok(s.ask("GET", f"/v1/arrays/{array['id']}/data"), 200)) == tuple(range(14))
    refused = ok(s.ask("POST", f"/v1/arrays?dtype=int32&shape=7,2&mesh={mesh}&spec=x,&uneven=refuse", b"\0" * 56, RAW), 422)
    assert "7" in refused["detail"] and "4" in refused["detail"]
    scalar = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=", floats([2.5]), RAW), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{scalar['id']}/data?format=json"), 200)["data"] == 2.5
    empty = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=0,3", b"", RAW), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{empty['id']}/data?format=json"), 200)["data"] == []
    special = ok(s.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [3], "data": ["NaN", "Infinity", -0.5]}), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{special['id']}/data?format=json"), 200)["data"] == ["NaN", "Infinity", -0.5]
    big = ok(s.ask("POST", "/v1/arrays", {"dtype": "int64", "shape": [2], "data": ["9007199254740993", -1]}), 201)
    assert ok(s.ask("GET", f"/v1/arrays/{big['id']}/data?format=json"), 200)["data"] == ["9007199254740993", -1]


def wrong_uploads_are_named(s):
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    for query, words in (("dtype=float32&shape=3", "bytes"), ("shape=2", "dtype"), (f"dtype=float32&shape=2&mesh={mesh}&spec=q", "'q'"),
                         (f"dtype=float32&shape=2&mesh={mesh}&spec=x,y", "rank"), ("dtype=float99&shape=2", "float99"),
                         (f"dtype=float32&shape=2,1&mesh={mesh}&spec=x,x", "at most one positional dimension"), ("dtyp=float32", "dtyp")):
        status, _, problem = s.ask("POST", f"/v1/arrays?{query}", floats([1, 2]), RAW)
        assert 400 <= status < 500 and words in json.dumps(problem), (query, status, problem)
    assert s.ask("POST", "/v1/arrays", b"x", {"Content-Type": "image/png"})[0] == 415


def runs_are_sharded_and_right(s):
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    array = ok(s.ask("POST", f"/v1/arrays?dtype=float32&shape=8,2&mesh={mesh}&spec=x,", floats(range(16)), RAW), 201)["id"]
    answer = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [{"array": array}, [[1, 1]] * 8]}), 200)
    assert answer["results"][0]["data"] == [[2.0 * i + 1, 2.0 * i + 2] for i in range(8)]
    assert answer["shardings"] == {"arguments": [{"spec": [["x"], []]}] * 2, "results": [{"spec": [["x"], []]}]}, answer["shardings"]
    cut = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [[[1, 2]] * 8, [[3, 4]] * 8], "mesh": MESH,
                                       "in_shardings": [{"spec": [["x"], ["y"]]}, None], "out_shardings": [{"spec": [[], ["x"]]}]}), 200)
    assert cut["results"][0]["data"] == [[4.0, 6.0]] * 8 and cut["shardings"]["results"] == [{"spec": [[], ["x"]]}]
    stored = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [{"array": array}, {"array": array}], "results": {"encoding": "array"}}), 200)
    result = stored["results"][0]["array"]
    assert ok(s.ask("GET", f"/v1/arrays/{result}"), 200)["mesh"] == mesh
    assert ok(s.ask("GET", f"/v1/arrays/{result}/data"), 200) == floats([2 * v for v in range(16)])
    nothing = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [{"array": array}, {"array": array}], "results": {"encoding": "none"}}), 200)
    assert nothing["results"][0]["shape"] == [8, 2] and "data" not in nothing["results"][0]


def donation_is_once(s):
    def upload():
        return ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=4", floats([1, 2, 3, 4]), RAW), 201)["id"]

    array = upload()
    run = {"program": {"text": DOUBLE_DONATED}, "arguments": [{"array": array}]}
    assert ok(s.ask("POST", "/v1/run", run), 200)["results"][0]["data"] == [2.0, 4.0, 6.0, 8.0]
    gone = ok(s.ask("GET", f"/v1/arrays/{array}/data"), 410)
    assert "deleted or donated" in gone["detail"]
    assert ok(s.ask("GET", f"/v1/arrays/{array}"), 200)["state"] == "donated"
    assert ok(s.ask("POST", "/v1/run", run), 409)["code"] == "array_donated"
    kept = upload()
    ok(s.ask("POST", "/v1/run", {**run, "arguments": [{"array": kept}], "donate": []}), 200)
    assert ok(s.ask("GET", f"/v1/arrays/{kept}/data"), 200) == floats([1, 2, 3, 4])
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(s.ask("POST", "/v1/run", {**run, "arguments": [{"array": kept}]})[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(200) == 1 and all(status in (200, 409, 410) for status in outcomes), outcomes


def programs_are_read_when_stored(s):
    program = ok(s.ask("POST", "/v1/programs", ADD, TEXT), 201)
    assert ok(s.ask("POST", "/v1/programs", ADD, TEXT), 200)["id"] == program["id"]
    assert program["arguments"][0] == {"dtype": "float32", "shape": [8, 2]} and program["effects"] == []
    problem = ok(s.ask("POST", "/v1/programs", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.frobnicate %a : tensor<2xf32>\n return %0 : tensor<2xf32> }", TEXT), 422)
    assert problem["code"] == "unsupported_op" and "frobnicate" in problem["detail"] and problem["errors"][0]["line"] == 2, problem
    problem = ok(s.ask("POST", "/v1/programs", "func.func @main(%a tensor<2xf32>) {", TEXT), 422)
    assert problem["code"] == "program_syntax" and problem["errors"][0]["line"] == 1, problem
    unknown = ok(s.ask("POST", "/v1/programs", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.custom_call @nobody(%a) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }", TEXT), 201)
    refused = ok(s.ask("POST", "/v1/run", {"program": {"id": unknown["id"]}, "arguments": [[1, 2]]}), 422)
    assert refused["code"] == "unsupported_custom_call" and "nobody" in refused["detail"]


NETWORK = """func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x32xf32> {jax.buffer_donor = true}) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %3 = stablehlo.add %2, %w : tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
}"""


def tuples_are_given_flat(s):
    """What @main takes and gives as tuples are its values from left to right; so does the registered program list them."""
    text = """func.func @main(%a: tuple<tensor<2xi32>, tuple<tensor<3xi32>>>, %b: tensor<i32>) -> (tuple<tensor<3xi32>, tensor<2xi32>>, tensor<i32>) {
  %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<2xi32>, tuple<tensor<3xi32>>>) -> tensor<2xi32>
  %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<2xi32>, tuple<tensor<3xi32>>>) -> tuple<tensor<3xi32>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<3xi32>>) -> tensor<3xi32>
  %3 = stablehlo.tuple %2, %0 : tuple<tensor<3xi32>, tensor<2xi32>>
  return %3, %b : tuple<tensor<3xi32>, tensor<2xi32>>, tensor<i32>
}"""
    answer = ok(s.ask("POST", "/v1/run", {"program": {"format": "stablehlo", "text": text}, "arguments": [[1, 2], [3, 4, 5], 6]}), 200)
    assert [result["data"] for result in answer["results"]] == [[3, 4, 5], [1, 2], 6], answer
    program = ok(s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": text}), 201)
    assert [argument["shape"] for argument in program["arguments"]] == [[2], [3], []], program
    wrong = ok(s.ask("POST", "/v1/run", {"program": {"format": "stablehlo", "text": text}, "arguments": [[[1, 2], [[3, 4, 5]]], 6]}), 422)
    assert "3" in wrong["detail"] and "2" in wrong["detail"], wrong


def programs_are_explained_before_they_run(s):
    at = "/v1/programs/" + ok(s.ask("POST", "/v1/programs", NETWORK, TEXT), 201)["id"]
    placed = {"mesh": {"axes": [{"name": "x", "size": 4}, {"name": "y", "size": 2}]}, "in_shardings": [{"spec": [["x"], []]}, {"spec": [[], ["y"]]}]}
    told = ok(s.ask("POST", at + ":explain", placed), 200)
    main = told["functions"][0]
    assert told["devices"] == 8 and main["arguments"] == ['@mesh, [{"x"}, {}]', '@mesh, [{}, {"y"}]'], main
    lines = {value["line"]: value for value in main["values"]}
    assert lines[3]["shardings"] == ['@mesh, [{"x"}, {"y"}]'], lines[3]
    assert lines[3]["decided"]["by"] == "rule" and lines[3]["decided"]["line"] in (2, 3), lines[3]
    assert main["decided"]["arguments"][0] == {"by": "argument", "number": 0, "text": "argument 0"}, main["decided"]
    # The sum over the rows, which x cuts: 2 (n - n / 4) of the 16 x 16 floats that a device has of the result.
    assert [(m["kind"], m["axes"], m["line"], m["bytes"]) for m in main["collectives"]] == [("all_reduce", '{"x"}', 4, 2 * (1024 - 256))], main["collectives"]
    assert told["totals"]["bytes_moved"] == 1536 and told["donation"] == [{"argument": 1, "result": 0, "bytes": 1024}], told
    # Two products of 2 x 8 x 16 x 32 operations on 8 devices, an add of 16 x 16 and 2 x 16 tanh.
    assert 2 * (2 * 8 * 16 * 32) / 8 <= told["totals"]["flops"] < 2 * (2 * 8 * 16 * 32) / 8 + 4096, told["totals"]
    arguments = (8 * 16 // 4 + 16 * 32 // 2) * 4
    device = told["memory"]["device"]  # scratch does not grow with the arguments
    assert device["arguments"] == arguments and arguments < device["peak"] - device["scratch"] < 16 * arguments, told["memory"]
    words = s.ask("POST", at + ":explain", placed, {"Accept": "text/plain"})[2].decode()
    assert 'all_reduce {"x"} of %2' in words and "1,536 bytes" in words and "rule of stablehlo.dot_general at line 2" in words, words
    picture = s.ask("POST", at + ":explain", placed, {"Accept": "image/svg+xml"})
    assert picture[1]["Content-Type"].startswith("image/svg+xml") and xml.dom.minidom.parseString(picture[2]).documentElement.tagName == "svg"
    drawn = xml.dom.minidom.parseString(picture[2])
    said = " ".join(text.firstChild.data for text in drawn.getElementsByTagName("text") if text.firstChild)
    for part in ("Legend", "Mesh @mesh: ", "One device", "operations", "bytes at the peak of memory", "bytes received"):
        assert part in said, (part, said)
    assert drawn.getElementsByTagName("desc")[0].firstChild.data and "prefers-color-scheme:dark" in drawn.getElementsByTagName("style")[0].firstChild.data
    uneven = ok(s.ask("POST", at + ":explain", {**placed, "mesh": {"axes": [{"name": "x", "size": 3}, {"name": "y", "size": 2}]}}), 200)["indivisible"]
    assert [(u["value"], u["size"], u["parts"], u["effect"], u["nearest"][0]["parts"]) for u in uneven][:1] == [("%x", 8, 3, "padded", 2)], uneven


def explaining_thousands_of_devices_takes_no_time(s):
    at = "/v1/programs/" + ok(s.ask("POST", "/v1/programs", NETWORK.replace("8x16", "8192x16").replace("8x32", "8192x32"), TEXT), 201)["id"]
    placed = {"mesh": {"axes": [{"name": "x", "size": 1024}, {"name": "y", "size": 4}]}, "in_shardings": [{"spec": [["x"], []]}, {"spec": [[], ["y"]]}]}
    told = ok(s.ask("POST", at + ":explain", placed), 200)
    assert told["devices"] == 4096 and told["functions"][0]["collectives"][0]["bytes"] == 2 * (512 - 512 // 1024), told["functions"][0]["collectives"]


def what_cannot_run_is_told_when_it_is_registered(s):
    line = '  %{0} = stablehlo.custom_call @{1}(%{2}) : (tensor<4xf32>) -> tensor<4xf32>\n'
    text = ("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + line.format(0, "some_target", "a") + line.format(1, "Cholesky", 0) +
            "  %2 = stablehlo.add %1, %1 : tensor<4xf32>\n" + line.format(3, "MoveToHost", 2) + "  return %3 : tensor<4xf32>\n}")
    expected = [(2, "stablehlo.custom_call", "'@some_target' is not known here"), (3, "stablehlo.custom_call", "'@Cholesky' is known, but not run here")]
    made = ok(s.ask("POST", "/v1/programs", text, TEXT), 201)
    at = f"/v1/programs/{made['id']}"
    for told in (made, ok(s.ask("GET", at), 200), ok(s.ask("POST", "/v1/programs", text, TEXT), 200), ok(s.ask("POST", at + ":explain", {}), 200)):
        places = told["cannot_run"]
        assert [(place["line"], place["op"]) for place in places] == [(number, op) for number, op, _ in expected], places
        assert all(words in place["detail"] and "explained" in place["detail"] for place, (_, _, words) in zip(places, expected)), places
        assert text.splitlines()[1][places[0]["column"] - 1:].startswith(("%0", "stablehlo.custom_call")), places
    as_text = s.ask("POST", at + ":explain", {}, {"Accept": "text/plain"})[2].decode()
    assert "Cannot run: line 2" in as_text and "Cannot run: line 3" in as_text, as_text
    refused = ok(s.ask("POST", "/v1/run", {"program": {"id": made["id"]}, "arguments": [[1, 2, 3, 4]]}), 422)
    assert refused["code"] == "unsupported_custom_call" and places[0]["detail"] in refused["detail"], refused
    runs = ok(s.ask("POST", "/v1/programs", text.replace("some_target", "MoveToHost").replace("Cholesky", "MoveToDevice"), TEXT), 201)
    assert runs["cannot_run"] == [] and ok(s.ask("POST", "/v1/run", {"program": {"id": runs["id"]}, "arguments": [[1, 2, 3, 4]]}), 200)
    # A function called twice is one place; of very many places the first are told.
    twice = ("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
             " return %1 : tensor<4xf32>\n}\nfunc.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + line.format(0, "some_target", "a") + " return %0 : tensor<4xf32>\n}")
    assert [place["line"] for place in ok(s.ask("POST", "/v1/programs", twice, TEXT), 201)["cannot_run"]] == [7]
    many = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + "".join(line.format(i + 1, "some_target", i if i else "a") for i in range(300)) + " return %300 : tensor<4xf32>\n}"
    assert len(ok(s.ask("POST", "/v1/programs", many, TEXT), 201)["cannot_run"]) == 100


def what_is_not_run_is_explained_all_the_same(s):
    unknown = ok(s.ask("POST", "/v1/programs", "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = stablehlo.custom_call @no_such_thing(%a) : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32>\n}", TEXT), 201)
    told = ok(s.ask("POST", f"/v1/programs/{unknown['id']}:explain", {"mesh": {"axes": [{"name": "x", "size": 2}]}, "in_shardings": [{"spec": ["x"]}]}), 200)
    assert told["unplanned"]["code"] == "unsupported_custom_call" and "no_such_thing" in told["unplanned"]["detail"], told
    assert told["functions"][0]["arguments"] == ['@mesh, [{"x"}]'] and "totals" not in told, told


def the_program_of_a_device_runs_again(s):
    at = "/v1/programs/" + ok(s.ask("POST", "/v1/programs", NETWORK, TEXT), 200)["id"]
    x = [[((7 * i + j) % 5 - 2) / 4 for j in range(16)] for i in range(8)]
    w = [[((3 * i + j) % 7 - 3) / 8 for j in range(32)] for i in range(16)]
    placed = {"mesh": {"axes": [{"name": "x", "size": 4}, {"name": "y", "size": 2}]}, "in_shardings": [{"spec": [["x"], []]}, {"spec": [[], ["y"]]}]}
    local = s.ask("POST", at + ":partition", placed)[2].decode()
    for words in ("sdy.manual_computation", "stablehlo.all_reduce", "tensor<2x16xf32>", "tensor<16x16xf32>"):
        assert words in local, (words, local)
    expected = np.transpose(x) @ np.tanh(np.matmul(x, w)) + w
    for text in (NETWORK, local):
        answer = ok(s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [x, w]}), 200)
        np.testing.assert_allclose(answer["results"][0]["data"], expected, rtol=1e-5, atol=1e-5)


def cheaper_shardings_are_suggested_and_can_be_used(s):
    text = "func.func @main(%a: tensor<512x256xf32>, %b: tensor<256x512xf32>) -> tensor<512x512xf32> { %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> return %0 : tensor<512x512xf32> }"
    at = "/v1/programs/" + ok(s.ask("POST", "/v1/programs", text, TEXT), 201)["id"]
    mesh = {"mesh": {"axes": [{"name": "x", "size": 4}, {"name": "y", "size": 2}]}}
    found = ok(s.ask("POST", at + ":suggest", mesh), 200)
    best = found["suggestions"][0]
    assert found["complete"] and found["now"]["bytes_moved"] == 0 and best["cost"]["bytes_moved"] == 0, found
    assert best["cost"]["flops"] * 8 == found["now"]["flops"] and any("operations of a device" in reason for reason in best["reasons"]), found
    told = ok(s.ask("POST", at + ":explain", {**mesh, "in_shardings": best["in_shardings"]}), 200)["totals"]
    assert told["flops"] == best["cost"]["flops"], told
    fixed = {**mesh, "in_shardings": [{"spec": [["x"], []]}, {"spec": [[], ["y"]]}]}
    assert ok(s.ask("POST", at + ":suggest", fixed), 200)["suggestions"] == [], "what the request fixes is not changed"
    assert "mesh" in ok(s.ask("POST", at + ":suggest", {}), 422)["detail"]


def requests_name_every_mistake(s):
    problem = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [[[1, 2]] * 7, "x"], "mash": 1, "results": {"encoding": "yaml"}}), 422)
    pointers = {error["pointer"] for error in problem["errors"]}
    assert {"/arguments/0", "/arguments/1", "/mash", "/results/encoding"} <= pointers, problem
    assert ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": []}), 422)["code"] == "invalid_argument"
    too_many = ok(s.ask("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [[[1, 2]] * 8] * 2, "mesh": {"axes": [{"name": "x", "size": 9}]}}), 422)
    assert "9" in too_many["detail"] and "8" in too_many["detail"]
    assert ok(s.ask("POST", "/v1/run", b"{\"a\":1,\"a\":2}", {"Content-Type": "application/json"}), 400)["code"] == "malformed_json"
    assert ok(s.ask("POST", "/v1/run", b"[" * 100000, {"Content-Type": "application/json"}), 400)["code"] == "malformed_json"


def texts_may_name_any_number_of_devices(s):
    """More devices than there are is refused with both numbers before anything is made for them."""
    body = "func.func @main(%a: tensor<4xf32>%s) -> tensor<4xf32> { return %%a : tensor<4xf32> }"
    for count, text in [(2147483648, "module attributes {mhlo.num_partitions = 2147483648 : i64} { " + body.replace("%s", "").replace("%%", "%") + " }"),
                        (1048576, "module { sdy.mesh @m = <[\"x\"=1048576]> " + body.replace("%s", " {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}").replace("%%", "%") + " }")]:
        program = {"format": "stablehlo", "text": text}
        refused = ok(s.ask("POST", "/v1/run", {"program": program, "arguments": [[1, 2, 3, 4]]}), 422)
        assert refused["code"] == "too_few_devices" and str(count) in refused["detail"] and " 8 " in refused["detail"], refused
        stored = s.ask("POST", "/v1/programs", program)[2]["id"]
        assert s.ask("POST", f"/v1/programs/{stored}:explain", {})[0] == 200
        # A mesh has 2^20 positions at most.
        beyond = ok(s.ask("POST", "/v1/programs", {"text": text.replace("1048576", "1048577")}), 422) if count == 1048576 else None
        assert beyond is None or beyond["code"] == "invalid_mesh" and "1048576" in beyond["detail"], beyond


def index_maps_of_large_meshes_come_in_pages(s):
    """The pages together are the whole: each position once, in order, and each block as often as the spec says."""
    mesh = ok(s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 64}, {"name": "y", "size": 40}]}), 201)["id"]
    question = {"shape": [128, 7], "mesh": mesh, "spec": [["x"]]}
    positions, cursor, pages, blocks = [], "", 0, {}
    while cursor is not None:
        page = ok(s.ask("POST", "/v1/shardings:resolve?limit=999" + (f"&cursor={cursor}" if cursor else ""), question), 200)
        assert page["shard_count"] == 64 and "2560" in page["picture"], page
        for shard in page["shards"]:
            positions.append(shard["position"])
            blocks.setdefault(tuple(map(tuple, shard["index"])), []).append(shard["replica_id"])
        cursor, pages = page["next"], pages + 1
    assert positions == list(range(2560)) and pages == 3
    assert blocks == {((2 * i, 2 * i + 2), (0, 7)): list(range(40)) for i in range(64)}
    assert len(ok(s.ask("POST", "/v1/shardings:resolve", question), 200)["shards"]) == 100
    for wrong in ("cursor=2560", "cursor=-1", "cursor=a", "limit=0", "limit=1001", "limit=9223372036854775808"):
        assert ok(s.ask("POST", "/v1/shardings:resolve?" + wrong, question), 422)["code"] == "invalid_query", wrong
    large = ok(s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 1048576}]}), 201)["id"]
    page = ok(s.ask("POST", "/v1/shardings:resolve?cursor=1048575", {"shape": [2097152], "mesh": large, "spec": [["x"]]}), 200)
    assert [shard["index"] for shard in page["shards"]] == [[[2097150, 2097152]]] and page["next"] is None
    assert page["op_sharding"] == "{devices=[1048576]<=[1048576]}"


def sessions_keep_their_order(s):
    session = ok(s.ask("POST", "/v1/sessions", {"name": "log"}), 201)["id"]
    body = lambda n: {"program": {"text": LOG}, "arguments": [n], "callbacks": {"0": {"effect": "log", "name": "n"}}, "results": {"encoding": "none"}}
    events = []

    def listen():
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=20)
        connection.request("GET", f"/v1/sessions/{session}/events")
        answer = connection.getresponse()
        for line in answer:
            if line.startswith(b"data:"):
                events.append(json.loads(line[5:]))
                if len(events) == 10:
                    break
        connection.close()

    listener = threading.Thread(target=listen)
    listener.start()
    for n in range(5):
        answer = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body(n)), 200)
        assert answer["effects"][0]["sequence"] == n + 1 and answer["effects"][0]["values"][0]["data"] == n
    for n in range(5, 10):
        accepted = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body(n), {"Prefer": "respond-async"}), 202)
        assert accepted["number"] == n + 1
    ok(s.ask("POST", f"/v1/sessions/{session}/barrier"), 200)
    log = ok(s.ask("GET", f"/v1/sessions/{session}/effects?limit=1000"), 200)["items"]
    assert [entry["values"][0]["data"] for entry in log] == list(range(10)) and [entry["sequence"] for entry in log] == list(range(1, 11))
    listener.join(20)
    assert [event["sequence"] for event in events] == list(range(1, 11)), events
    page = s.ask("GET", f"/v1/sessions/{session}/effects?after=7&limit=2")
    assert [entry["sequence"] for entry in ok(page, 200)["items"]] == [8, 9] and page[2]["next"] == "9"
    link = page[1]["Link"].removesuffix('>; rel="next"').removeprefix("<")
    page = s.ask("GET", link)
    assert [entry["sequence"] for entry in ok(page, 200)["items"]] == [10] and page[2]["next"] is None and page[1]["Link"] is None
    alone = ok(s.ask("POST", "/v1/run", body(3)), 200)
    assert alone["effects"][0]["name"] == "n" and "job" not in alone, "a run without session writes no row"


def jobs_can_be_watched_cancelled_and_timed_out(s):
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": SPIN}, "arguments": [2000000000]}, {"Prefer": "respond-async"}), 202)
    until(lambda: ok(s.ask("GET", f"/v1/jobs/{job['id']}"), 200).get("progress", {}).get("steps_done"), "the job runs")
    assert ok(s.ask("GET", f"/v1/jobs/{job['id']}"), 200)["state"] == "running"
    assert s.ask("GET", "/livez")[0] == 200
    ok(s.ask("DELETE", f"/v1/jobs/{job['id']}"), 202)
    assert ok(s.ask("GET", f"/v1/jobs/{job['id']}?wait=20"), 200)["state"] == "cancelled"
    assert s.ask("DELETE", f"/v1/jobs/{job['id']}")[0] == 204
    assert ok(s.ask("DELETE", f"/v1/jobs/{job['id']}"), 404)["code"] == "not_found"
    late = ok(s.ask("POST", "/v1/run", {"program": {"text": SPIN}, "arguments": [2000000000], "deadline": 0.2}), 422)
    assert late["code"] == "deadline_exceeded", late
    quick = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": SPIN}, "arguments": [1000]}, {"Prefer": "wait=20"}), 200)
    assert quick["results"][0]["data"] == 1000


def keys_make_requests_happen_once(s):
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    body = {"program": {"text": LOG}, "arguments": [7], "results": {"encoding": "json"}}
    first = s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Idempotency-Key": "k1"})
    again = s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Idempotency-Key": "k1"})
    assert ok(first, 200) == ok(again, 200) and again[1]["Idempotency-Replayed"] == "true"
    assert len(ok(s.ask("GET", f"/v1/sessions/{session}/effects"), 200)["items"]) == 1
    assert ok(s.ask("POST", f"/v1/sessions/{session}/jobs", {**body, "arguments": [8]}, {"Idempotency-Key": "k1"}), 422)["code"] == "idempotency_key_reused"


def principals_do_not_see_each_other(s):
    mine, yours = {"Authorization": "Bearer mine"}, {"Authorization": "Bearer yours"}
    array = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=1", floats([1]), {**RAW, **mine}), 201)["id"]
    session = ok(s.ask("POST", "/v1/sessions", headers=mine), 201)["id"]
    for path in (f"/v1/arrays/{array}", f"/v1/arrays/{array}/data", f"/v1/arrays/{array}/shards", f"/v1/sessions/{session}", f"/v1/sessions/{session}/effects"):
        assert s.ask("GET", path, headers=yours)[0] == 404 and s.ask("GET", path)[0] == 404 and s.ask("GET", path, headers=mine)[0] == 200, path
    assert s.ask("DELETE", f"/v1/arrays/{array}", headers=yours)[0] == 404


def health_is_told(s):
    assert s.ask("GET", "/livez")[2].strip() == b"ok" and s.ask("GET", "/readyz")[0] == 200
    assert ok(s.ask("GET", "/health"), 200)["status"] == "ok"
    metrics = s.ask("GET", "/metrics")[2].decode()
    assert "meshd_jobs_total{state=\"done\"}" in metrics and "meshd_http_requests_total" in metrics
    status, headers, _ = s.ask("DELETE", "/v1/run")
    assert status == 405 and "POST" in headers["Allow"]


def programs_take_and_give_while_they_run(s):
    """A program that doubles what it is fed, three times; its client feeds it when it has seen the answer before."""
    text = """func.func @main() -> tensor<i32> {
  %t = stablehlo.create_token : !stablehlo.token
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %k = %t) : tensor<i32>, !stablehlo.token cond {
    %p = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %x:2 = "stablehlo.infeed"(%k) <{infeed_config = "in"}> : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
    %y = stablehlo.add %x#0, %x#0 : tensor<i32>
    %u = "stablehlo.outfeed"(%y, %x#1) <{outfeed_config = "out"}> : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %u : tensor<i32>, !stablehlo.token
  }
  return %0#0 : tensor<i32>
}"""
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", {"program": {"text": text}, "arguments": []}, {"Prefer": "respond-async"}), 202)["id"]
    value = 1
    for turn in range(3):
        ok(s.ask("POST", f"/v1/sessions/{session}/infeed", {"queue": "in", "values": [{"dtype": "int32", "shape": [], "data": value}]}), 201)
        given = ok(s.ask("GET", f"/v1/sessions/{session}/outfeed?queue=out&after={turn}", None, {"Prefer": "wait=30"}), 200)["items"]
        assert [(entry["number"], entry["values"][0]["data"]) for entry in given] == [(turn + 1, 2 * value)], given
        value = given[0]["values"][0]["data"]
    assert ok(s.ask("GET", f"/v1/jobs/{job}?wait=30"), 200)["state"] == "done"
    assert ok(s.ask("GET", f"/v1/sessions/{session}/infeed"), 200)["items"][0]["waiting"] == 0


def shutdown_ends_with_a_job_that_does_not(s):
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    spin = {"program": {"text": SPIN}, "arguments": [2000000000]}
    job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", spin, {"Prefer": "respond-async"}), 202)["id"]
    assert ok(s.ask("POST", "/v1/run", {"program": {"text": SPIN}, "arguments": [10]}), 200)["results"][0]["data"] == 10, "runs take turns"
    behind = []
    waiting = threading.Thread(target=lambda: behind.append(s.ask("POST", "/v1/run", spin)[0]))
    waiting.start()
    until(lambda: b"\nmeshd_jobs_running 2\n" in s.ask("GET", "/metrics")[2], "both jobs run")
    started = time.time()
    assert s.stop() == 0 and time.time() - started < 40, "drains within its time"
    waiting.join(10)
    assert behind == [503], behind
    s.start()
    assert ok(s.ask("GET", f"/v1/jobs/{job}"), 200)["state"] in ("queued", "running"), "what was accepted runs again"
    ok(s.ask("DELETE", f"/v1/jobs/{job}"), 202)
    assert ok(s.ask("GET", f"/v1/jobs/{job}?wait=20"), 200)["state"] == "cancelled"


def restart_keeps_what_was_acknowledged(s):
    durable = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=2", floats([5, 6]), RAW), 201)["id"]
    memory = ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=2&durability=memory", floats([5, 6]), RAW), 201)["id"]
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    assert s.stop() == 0, "SIGTERM ends with 0"
    s.start()
    assert ok(s.ask("GET", f"/v1/arrays/{durable}/data"), 200) == floats([5, 6])
    assert ok(s.ask("GET", f"/v1/arrays/{memory}/data"), 410)["code"] == "array_lost"
    assert ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"] == mesh


PYTHON = {"format": "numpy"}


def the_mistakes_of_a_first_hour_say_what_to_write(s):
    """Each as a newcomer makes it, with the words that help and the place."""
    run = lambda program, arguments=(1,), **more: s.ask("POST", "/v1/run", {"program": program, "arguments": list(arguments), **more})
    for text, words, line, column in (
            ("def f(x): return y", "the name 'y' is not defined", 1, 18),
            ("def f(x):\n    retrun x", "got 'x'; did you mean 'return'?", 2, 12),
            ("def f(x): return jnp.tahn(x)", "did you mean 'tanh'?", 1, 21),
            ("def f(x): return x + np.random.randn()", "random.normal(random.key(0), (2, 3))", 1, 24),
            ("def f(x):\n    x[0] = 1\n    return x", "x.at[index].set(value)", 2, 6)):
        problem = ok(run({**PYTHON, "text": text}), 422)
        (error,) = problem["errors"]
        assert words in problem["detail"] and (error["pointer"], error["line"], error["column"]) == ("/program/text", line, column), problem
    assert "'y' is not defined; did" not in ok(run({**PYTHON, "text": "def f(x): return y"}), 422)["detail"], "no guess from one letter"
    problem = ok(run("def f(x): return x"), 422)
    assert problem["errors"] == [{"pointer": "/program", "detail": problem["detail"].removeprefix("/program: ")}] and '"format": "numpy"' in problem["detail"], problem
    good, gone = {**PYTHON, "text": "def f(x): return x"}, "0000000-0000-7000-8000-000000000000"
    for answer, pointer in ((run(good, [1, {"array": "arr_0" + gone}]), "/arguments/1"), (run(good, mesh="mesh_" + "0" * 32), "/mesh"),
                            (run({"id": "prog_" + "0" * 32}), "/program/id")):
        problem = ok(answer, 404)
        assert problem["errors"] == [{"pointer": pointer, "detail": problem["detail"]}], problem


def programs_are_known_by_their_bytes(s):
    """curl --data-binary @f.mlir says a form's type, -T says none; the text, its JSON and an artifact are told apart all the same."""
    text = "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> { return %a : tensor<3xf32> }"
    stored = ok(s.ask("POST", "/v1/programs", text, TEXT), 201)["id"]
    for media in ("application/x-www-form-urlencoded", "application/octet-stream"):
        assert ok(s.ask("POST", "/v1/programs", text, {"Content-Type": media}), 200)["id"] == stored
        assert ok(s.ask("POST", "/v1/programs", json.dumps({"text": text}), {"Content-Type": media}), 200)["id"] == stored
        assert ok(s.ask("POST", "/v1/programs", b"ML\xefR and no more", {"Content-Type": media}), 422)["code"] in ("program_syntax", "unsupported_format")
    assert ok(s.ask("POST", "/v1/programs", text, {"Content-Type": "application/x-mlir"}), 415)["code"] == "unsupported_media_type"


def pictures_say_whether_they_are_to_scale(s):
    mesh = ok(s.ask("POST", "/v1/meshes", MESH), 200)["id"]
    for shape, spec, words in (("16,64", "x,y", "a shard, to scale"), ("7,2", "x,", "a shard, to scale"), ("9", "x.y", "a shard, to scale"),
                               ("100,3", ",", "narrow ones widened")):
        count = int(np.prod([int(size) for size in shape.split(",")]))
        array = ok(s.ask("POST", f"/v1/arrays?dtype=uint8&shape={shape}&mesh={mesh}&spec={spec}", bytes(count), RAW), 201)["id"]
        picture = s.ask("GET", f"/v1/arrays/{array}/sharding.svg")[2].decode()
        assert words in picture, (shape, spec, picture[-300:])


STORIES = [meshes_are_interned, wrong_meshes_say_everything_at_once, arrays_lie_as_their_spec_says, uneven_and_empty_arrays, wrong_uploads_are_named,
           runs_are_sharded_and_right, donation_is_once, programs_are_read_when_stored, tuples_are_given_flat, programs_are_explained_before_they_run,
           explaining_thousands_of_devices_takes_no_time, what_cannot_run_is_told_when_it_is_registered, what_is_not_run_is_explained_all_the_same, the_program_of_a_device_runs_again, cheaper_shardings_are_suggested_and_can_be_used, requests_name_every_mistake, texts_may_name_any_number_of_devices, index_maps_of_large_meshes_come_in_pages, sessions_keep_their_order,
           jobs_can_be_watched_cancelled_and_timed_out, keys_make_requests_happen_once, principals_do_not_see_each_other, health_is_told, programs_take_and_give_while_they_run,
           the_mistakes_of_a_first_hour_say_what_to_write, programs_are_known_by_their_bytes, pictures_say_whether_they_are_to_scale,
           shutdown_ends_with_a_job_that_does_not, restart_keeps_what_was_acknowledged]


sys.exit(run_stories(STORIES, always=STORIES[:1]))
