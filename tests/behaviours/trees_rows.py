#!/usr/bin/env python3
"""Arguments: trees, static values, donation."""
import itertools
import random

from harness import DEVICES, data, floats, grid, main, mesh, ok, own_server, refused, run, upload

DOUBLE = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }"
SUM = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xi32>) -> tensor<f32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32> }"""


def behaviour_P13_a_number_is_as_good_as_a_list(s):
    for donate in (0, [0]):
        array = upload(s, range(4), [4])["id"]
        run(s, DOUBLE, [{"array": array}], donate=donate)
        assert ok(s.ask("GET", "/v1/arrays/" + array))["state"] == "donated"


def behaviour_P14_a_donated_array_cannot_be_read_or_used(s):
    array = upload(s, range(4), [4])["id"]
    assert run(s, DOUBLE, [{"array": array}], donate=[0])["results"][0]["data"] == [0, 2, 4, 6]
    refused(s.ask("GET", f"/v1/arrays/{array}/data"), 410, "deleted or donated")
    refused(s.ask("GET", f"/v1/arrays/{array}/shards/0"), 410, "deleted or donated")
    body = {"program": {"text": DOUBLE}, "arguments": [{"array": array}]}
    refused(s.ask("POST", "/v1/run", body), 409, "deleted or donated")
    refused(s.ask("POST", "/v1/run", {**body, "donate": [0]}), 409, "deleted or donated")
    assert ok(s.ask("GET", "/v1/arrays/" + array))["state"] == "donated"


def behaviour_P15_donations_that_nothing_takes_are_one_warning(s):
    x, y = upload(s, [1, 2], [2])["id"], upload(s, [3, 4], [2], dtype="int32")["id"]
    answer = run(s, SUM, [{"array": x}, {"array": y}], donate=[0, 1])
    assert len(answer["warnings"]) == 1 and "float32[2]" in answer["warnings"][0] and "int32[2]" in answer["warnings"][0], answer["warnings"]
    refused(s.ask("POST", "/v1/run", {"program": {"text": SUM}, "arguments": [[1, 2], [3, 4]], "donate": [0, 1], "donation": "strict"}), 422,
            "float32[2]", "int32[2]")


def behaviour_P18_a_loop_of_donations_needs_one_copy(s):
    text = "func.func @main(%a: tensor<65536xf32>) -> tensor<65536xf32> { %0 = stablehlo.add %a, %a : tensor<65536xf32> return %0 : tensor<65536xf32> }"
    once = 65536 * 4
    for donate, copies in (([], 2), ([0], 1)):
        array = upload(s, [1.0] * 65536, [65536], durability="memory")["id"]
        for _ in range(3):
            answer = run(s, text, [{"array": array}], donate=donate, results={"encoding": "array", "durability": "memory"})
            assert answer["statistics"]["peak_bytes"] == copies * once, (donate, answer["statistics"])
            array = answer["results"][0]["array"]


def behaviour_P20_an_array_cannot_be_donated_and_used_twice(s):
    add = "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.add %a, %b : tensor<4xf32> return %0 : tensor<4xf32> }"
    array = upload(s, range(4), [4])["id"]
    refused(s.ask("POST", "/v1/run", {"program": {"text": add}, "arguments": [{"array": array}] * 2, "donate": [0]}), 422, array)
    assert ok(s.ask("GET", "/v1/arrays/" + array))["state"] == "ready"


SCALE = """func.func @main(%x: tensor<4xf32>, %k: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  return %1 : tensor<4xf32> }"""
PAIR = """func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.subtract %a, %b : tensor<f32>
  return %0, %c : tensor<f32>, tensor<f32> }"""


def call(s, arguments, status=200, **more):
    return ok(s.ask("POST", "/v1/calls:resolve", {"arguments": arguments, **more}), status)


def specs(s, specs, tree):
    return [entry["value"] for entry in call(s, [tree], specs=[specs])["specs"]]


def register(s, text, **trees):
    status, _, document = s.ask("POST", "/v1/programs", {"text": text, **trees})
    assert status in (200, 201), document
    return document


def behaviour_P1_arguments_have_the_tree_of_the_program(s):
    program = register(s, PAIR, in_tree=[{"x": "*", "y": ["*", "*"]}], out_tree={"d": "*", "c": "*"})
    assert program["in_tree"] == [{"x": "*", "y": ["*", "*"]}]
    ask = lambda arguments: s.ask("POST", "/v1/run", {"program": {"id": program["id"]}, "arguments": arguments})
    answer = ok(ask([{"y": [2, 7], "x": 5}]))
    assert [result["data"] for result in answer["results"]] == [3, 7] and answer["result_tree"] == {"c": 0, "d": 1}
    refused(ask([{"y": [2, 7]}]), 422, "Expected [{'x': *, 'y': [*, *]}]", "got [{'y': [*, *]}]")
    refused(ask([{"x": 1, "y": {"a": 2, "b": 3}}]), 422, "Expected [{'x': *, 'y': [*, *]}]", "{'a': *, 'b': *}")
    refused(s.ask("POST", "/v1/programs", {"text": PAIR, "in_tree": ["*"]}), 422, "1 leaves", "3 arguments")
    assert register(s, PAIR)["id"] != program["id"], "trees are part of what a program is"


def behaviour_P2_null_is_no_leaf_and_a_spec(s):
    assert call(s, [[1, None, 2]])["leaves"] == 2
    assert specs(s, None, [1, [2, 3]]) == [None, None, None]


def behaviour_P3_keys_are_sorted_and_nodes_have_kinds(s):
    assert call(s, [{"b": 1, "a": 2}])["tree"] == "[{'a': *, 'b': *}]"
    assert specs(s, {"b": "sb", "a": "sa"}, {"b": 1, "a": 2}) == ["sa", "sb"]
    refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [{"a": 1}], "specs": [[0]]}), 422, "tree prefix")


def behaviour_P4_a_spec_holds_for_all_leaves_below_it(s):
    assert specs(s, {"a": 0, "b": 1}, {"a": [1, 2], "b": 3}) == [0, 0, 1]


def behaviour_P5_specs_are_a_tree_prefix(s):
    refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [{"a": 1, "b": 2}], "specs": [{"a": 0, "b": [1, 2]}]}), 422,
            "must be a tree prefix", "{'a': *, 'b': [*, *]}", "{'a': *, 'b': *}")


def behaviour_P6_all_mismatches_are_told_at_once(s):
    problem = refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [{"a": 1, "b": 2}], "specs": [{"a": [0, 1], "b": [2, 3]}]}), 422,
                      "Mismatch details (2 found)")
    assert [error["pointer"] for error in problem["errors"]] == ["/specs/0/a", "/specs/0/b"]
    refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [{"a": 1}], "specs": [{"a": [0]}]}), 422, "a list of one is not the same")


def behaviour_P7_there_is_a_spec_for_each_leaf(s):
    rng = random.Random(7)

    def tree(depth):
        kind = rng.choice("lol12n") if depth else "1"
        if kind in "lo":
            inner = [tree(depth - 1) for _ in range(rng.randint(0, 3))]
            return inner if kind == "l" else {f"k{i}": value for i, value in enumerate(inner)}
        return None if kind == "n" else 1

    for _ in range(40):
        value = tree(3)
        answer = call(s, [value], specs=["x"])
        assert len(answer["specs"]) == answer["leaves"] == len(answer["donated"]), value


@own_server()
def behaviour_P8_static_values_are_keyed_by_value(s):
    swapped = SCALE.replace("%x: tensor<4xf32>, %k: tensor<f32>", "%k: tensor<f32>, %x: tensor<4xf32>")
    for value in ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], {"dtype": "float32", "shape": [4], "data": [1, 2, 3, 4]}):
        assert run(s, swapped, [2], static={"1": value})["results"][0]["data"] == [2, 4, 6, 8], "the rest stays in order"
    assert ok(s.ask("GET", "/v1/info"))["compile"]["lower"] == {"count": 1, "hits": 2}


def behaviour_P9_one_flag_for_each_leaf(s):
    T, F = True, False
    arguments = [{"a": 1, "b": 2}, {"c": 3, "d": 4}, 5]
    assert call(s, arguments, donate=[0, 2], keywords={"a": 1})["donated"] == [T, T, F, F, T, F]
    leaves = [2, 2, 1]
    for chosen in itertools.chain.from_iterable(itertools.permutations(range(3), n) for n in range(4)):
        expected = [flag for i, count in enumerate(leaves) for flag in [i in chosen] * count]
        assert call(s, arguments, donate=list(chosen))["donated"] == expected
        assert call(s, arguments, donate=list(chosen), keywords={"a": 1})["donated"] == expected + [F]


def behaviour_P10_donated_positions_without_the_static_ones(s):
    for donate, static, expected in (([3, 4], [0, 1], [1, 2]), ([3, 3, 3], [0, 1], [1]), ([3, 2], [1, 0], [0, 1]), ([], [1, 2, 3], []),
                                     ([0], [2, 3], [0]), ([2, 3], [0, 1], [0, 1])):
        assert call(s, [1] * 5, donate=donate, static=static)["donate"] == expected


def behaviour_P11_static_and_donated_cannot_intersect(s):
    for donate, static in (([0], [0]), ([0, 1], [1, 2]), ([0, 1, 2], [0, 1, 2])):
        refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [1] * 3, "donate": donate, "static": static}), 422, "cannot intersect")
    refused(s.ask("POST", "/v1/run", {"program": {"text": SCALE}, "arguments": [[1] * 4], "static": {"1": 2}, "donate": [1]}), 422, "cannot intersect")


def behaviour_P12_positions_are_there(s):
    refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [1, 2], "donate": [2], "static": [0]}), 422, "(0)", "(2)", "only 2 positional arguments")
    refused(s.ask("POST", "/v1/calls:resolve", {"arguments": [1, 2], "static": [5]}), 422, "(5)", "only 2 positional arguments")


def behaviour_P16_static_and_donated_arguments_together(s):
    text = """func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<2xf32>, %d: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
      %0 = stablehlo.add %a, %b : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %3 = stablehlo.add %c, %1 : tensor<2xf32>
      %4 = stablehlo.add %d, %2 : tensor<3xf32>
      return %3, %4 : tensor<2xf32>, tensor<3xf32> }"""
    c, d = upload(s, [1, 1], [2])["id"], upload(s, [1, 1, 1], [3])["id"]
    answer = run(s, text, [{"array": c}, {"array": d}], static={"0": 1, "1": 2}, donate=[2, 3])
    assert [result["data"] for result in answer["results"]] == [[4, 4], [4, 4, 4]] and "warnings" not in answer
    assert [ok(s.ask("GET", "/v1/arrays/" + array))["state"] for array in (c, d)] == ["donated", "donated"]


def behaviour_P21_a_program_keeps_its_name_and_words(s):
    made = register(s, SCALE.replace("multiply", "add"), name="scale", doc="adds k")
    assert (made["name"], made["doc"]) == ("scale", "adds k")
    assert ok(s.ask("GET", "/v1/programs/" + made["id"]))["doc"] == "adds k"
    listed = [item for item in ok(s.ask("GET", "/v1/programs?limit=1000"))["items"] if item["id"] == made["id"]]
    assert listed[0]["name"] == "scale"


COUNTING = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.while(%i = %c) : tensor<i32> cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %0 : tensor<i32>
}"""


# One step before the loop, three an iteration: the budget ends at a comparison.
@own_server("--devices", "8", "--step-budget", "1000")
def behaviour_P22_errors_keep_op_and_place(s):
    problem = refused(s.ask("POST", "/v1/run", {"program": {"text": COUNTING}, "arguments": [1000000]}), 422, "line 5", "stablehlo.compare")
    assert problem["code"] == "budget_exceeded" and problem["errors"][0]["line"] == 5
    refused(s.ask("POST", "/v1/run", {"program": {"text": COUNTING.replace("stablehlo.add", "stablehlo.ad")}, "arguments": [1]}), 422, "line 8", "stablehlo.ad")


def behaviour_P17_donation_inside_of_calls_is_ignored_with_a_warning(s):
    text = """module { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = func.call @inner(%a) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }
    func.func private @inner(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
      %0 = stablehlo.add %a, %a : tensor<4xf32>
      return %0 : tensor<4xf32> } }"""
    array = upload(s, range(4), [4])["id"]
    answer = run(s, text, [{"array": array}])
    assert answer["results"][0]["data"] == [0, 2, 4, 6] and len(answer["warnings"]) == 1
    assert "nested donation is not supported" in answer["warnings"][0] and "@inner" in answer["warnings"][0]
    assert ok(s.ask("GET", "/v1/arrays/" + array))["state"] == "ready"


main(globals())
