#!/usr/bin/env python3
"""Partitioned programs: rows of sharded_jit, with names of axes and with integer specs."""
import json
import tempfile

import numpy as np

from harness import DEVICES, Meshd, data, floats, grid, main, mesh, ok, own_server, refused, run, shards, upload

INNER = """module { sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.add %x, %x : tensor<4x8xf32>
    CONSTRAINT
    %2 = stablehlo.multiply %1, %x : tensor<4x8xf32>
    return %2 : tensor<4x8xf32> } }"""
PLAIN = INNER.replace("CONSTRAINT", "%1 = stablehlo.negate %0 : tensor<4x8xf32>")
DOT = """func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32> }"""
CALLS = """module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = func.call @inner(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = func.call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32> }
  func.func private @inner(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.add %a, %a : tensor<8xf32>
    return %0 : tensor<8xf32> } }"""
# What jax.vjp of x -> sum(constrain(2x) * x) prints: the cotangent gets the same constraint.
VJP = """module { sdy.mesh @mesh = <["a"=4]>
  func.func @main(%x: tensor<8xf32>, %ct: tensor<f32>) -> tensor<8xf32> {
    %two = stablehlo.constant dense<2.0> : tensor<8xf32>
    %0 = stablehlo.multiply %x, %two : tensor<8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
    %2 = stablehlo.broadcast_in_dim %ct, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %3 = stablehlo.multiply %2, %x : tensor<8xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"a"}]> : tensor<8xf32>
    %5 = stablehlo.multiply %4, %two : tensor<8xf32>
    %6 = stablehlo.multiply %2, %1 : tensor<8xf32>
    %7 = stablehlo.add %5, %6 : tensor<8xf32>
    return %7 : tensor<8xf32> } }"""


def behaviour_S12_more_devices_than_there_are(s):
    body = {"program": {"text": DOT}, "arguments": [np.eye(8).tolist()] * 2, "mesh": {"axes": [{"name": "x", "size": 9}]}}
    refused(s.ask("POST", "/v1/run", body), 422, "requires 9 devices", "only 8 devices are available")


def behaviour_S33_constants_are_on_every_device(s):
    text = """func.func @main(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
      %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %0 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      return %0 : tensor<4x2xf32> }"""
    answer = run(s, text, [[[1, 0], [0, 1], [1, 1], [2, 0]]], mesh={"axis_names": ["x"], "devices": grid(4)}, in_shardings=[{"spec": [["x"]]}])
    assert answer["results"][0]["data"] == [[1, 2], [3, 4], [4, 6], [2, 4]] and answer["shardings"]["results"] == [{"spec": [["x"], []]}]


def behaviour_S34_calls_with_shardings_run(s):
    answer = run(s, CALLS, [list(range(8))])
    assert answer["results"][0]["data"] == [4.0 * i for i in range(8)] and answer["shardings"]["results"] == [{"spec": [["x"]]}]


def behaviour_S36_a_constraint_changes_no_value(s):
    x = [[float(8 * i + j) for j in range(8)] for i in range(4)]
    expected = [[-2 * v * v for v in row] for row in x]
    assert run(s, PLAIN, [x])["results"][0]["data"] == expected
    for spec in ('[{"a"}, {"b"}]', '[{}, {"a", "b"}]', '[{"b"}, {}]', "[{}, {}]"):
        text = INNER.replace("CONSTRAINT", "%n = stablehlo.negate %0 : tensor<4x8xf32>\n"
                             f"    %1 = sdy.sharding_constraint %n <@mesh, {spec}> : tensor<4x8xf32>")
        assert run(s, text, [x])["results"][0]["data"] == expected, spec


def behaviour_S38_a_differentiated_program_runs(s):
    constrained = run(s, VJP, [list(range(8)), 1.5])["results"][0]["data"]
    free = VJP
    for name, of in (("%1", "%0"), ("%4", "%3")):
        free = free.replace(f'{name} = sdy.sharding_constraint {of} <@mesh, [{{"a"}}]> : tensor<8xf32>', f"{name} = stablehlo.abs {of} : tensor<8xf32>")
    assert constrained == run(s, free, [list(range(8)), 1.5])["results"][0]["data"] == [6.0 * i for i in range(8)]


def behaviour_S42_two_hundred_arguments(s):
    parameters = ", ".join(f"%a{i}: tensor<4xf32>" for i in range(200))
    sums = "".join(f"  %s{i} = stablehlo.add %{'a0' if i == 1 else f's{i - 1}'}, %a{i} : tensor<4xf32>\n" for i in range(1, 200))
    text = f"func.func @main({parameters}) -> tensor<4xf32> {{\n{sums}  return %s199 : tensor<4xf32> }}"
    answer = run(s, text, [[i] * 4 for i in range(200)], mesh={"axis_names": ["x"], "devices": grid(4)}, in_shardings=[{"spec": [["x"]]}] * 200)
    assert answer["results"][0]["data"] == [19900.0] * 4


def behaviour_S43_products_of_operands_cut_differently(s):
    rng = np.random.default_rng(43)
    a, b = rng.integers(-8, 8, (8, 8)), rng.integers(-8, 8, (8, 8))
    cuts = {"rows": [["x", "y"], []], "grid": [["x"], ["y"]], "columns": [[], ["x", "y"]], "whole": [[], []]}
    for left, right in (("rows", "grid"), ("grid", "rows"), ("grid", "columns"), ("whole", "grid")):
        for out in ("rows", "grid"):
            answer = run(s, DOT, [a.tolist(), b.tolist()], mesh={"axis_names": ["x", "y"], "devices": grid(2, 2)},
                         in_shardings=[{"spec": cuts[left]}, {"spec": cuts[right]}], out_shardings=[{"spec": cuts[out]}])
            assert answer["results"][0]["data"] == (a @ b).tolist(), (left, right, out)
            assert answer["shardings"]["results"] == [{"spec": cuts[out]}]


NEGATE = "func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> { %0 = stablehlo.negate %x : tensor<8x8xf32> return %0 : tensor<8x8xf32> }"
ADD = "func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> { %0 = stablehlo.add %x, %y : tensor<8x8xf32> return %0 : tensor<8x8xf32> }"
SCALE = """func.func @main(%x: tensor<4x4xf32>, %k: tensor<f32>) -> tensor<4x4xf32> {
  %0 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32> }"""
SQUARE = [[float(8 * i + j) for j in range(8)] for i in range(8)]
FOUR = [[float(4 * i + j) for j in range(4)] for i in range(4)]


def P(*parts):
    return {"parts": list(parts)}


def ask(s, program, arguments, **more):
    return s.ask("POST", "/v1/run", {"program": {"text": program}, "arguments": arguments, **more})


def resolve(s, **body):
    return s.ask("POST", "/v1/shardings:resolve", body)


def buffers(s, array):
    """Data of each device's shard."""
    return [ok(s.ask("GET", shard["data"] + "?format=json"))["data"] for shard in shards(s, array)]


def lowered(s):
    return ok(s.ask("GET", "/v1/info"))["compile"]["lower"]


def behaviour_A14_integer_specs_take_no_abstract_mesh(s):
    refused(ask(s, NEGATE, [SQUARE], mesh={"axes": [{"name": "x", "size": 2}]}, in_shardings=[P(2, 1)]), 422, "abstract")
    abstract = s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 2}]})[2]["id"]
    refused(resolve(s, shape=[8, 8], mesh=abstract, parts=[2, 1]), 422, "take no mesh")


def behaviour_S1_an_integer_spec_is_its_own_form(s):
    assert ok(resolve(s, shape=[8, 8], parts=[2, 1]))["text"] == "PartitionSpec(2, 1)"
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[{"parts": [2, 1], "spec": [["x"], []]}]), 422, "one or the other")


def behaviour_S2_specs_are_a_tree_prefix_of_the_arguments(s):
    text = """func.func @main(%a: tensor<4x4xf32>, %s: tensor<f32>, %b: tensor<4x4xf32>, %t: tensor<f32>, %c: tensor<4x4xf32>, %d: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = stablehlo.add %a, %b : tensor<4x4xf32>
      %1 = stablehlo.add %c, %d : tensor<4x4xf32>
      %2 = stablehlo.add %0, %1 : tensor<4x4xf32>
      return %2 : tensor<4x4xf32> }"""
    tree = [["*", "*"], "*", ["*", ["*", "*"]]]
    program = ok(s.ask("POST", "/v1/programs", {"text": text, "in_tree": tree}), 201)["id"]
    answer = ok(s.ask("POST", "/v1/run", {"program": {"id": program}, "arguments": [[FOUR, 1], FOUR, [2, [FOUR, FOUR]]],
                                          "in_shardings": [None, P(2, 1), [None, P(2, 1)]], "out_shardings": [P(2, 1)], "results": {"encoding": "array"}}))
    array = answer["results"][0]["array"]
    assert len(buffers(s, array)) == 2 and data(s, array) == [[4 * v for v in row] for row in FOUR]


def behaviour_S3_wrong_specs_of_results_name_their_field(s):
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[P(2, 1)], out_shardings=[P(2, 1), P(2, 1)]), 422, "out_shardings")
    program = s.ask("POST", "/v1/programs", {"text": NEGATE, "out_tree": {"y": "*"}})[2]["id"]
    refused(s.ask("POST", "/v1/run", {"program": {"id": program}, "arguments": [SQUARE], "out_shardings": [P(2, 1)]}), 422, "/out_shardings", "tree prefix")
    answer = ok(s.ask("POST", "/v1/run", {"program": {"id": program}, "arguments": [SQUARE], "out_shardings": {"y": P(2, 1)}}))
    assert answer["result_tree"] == {"y": 0}


def behaviour_S4_all_specs_have_the_same_total(s):
    refused(ask(s, ADD, [SQUARE, SQUARE], in_shardings=[P(2, 1), P(2, 2)]), 422, "same number of total partitions", "PartitionSpec(2, 1), PartitionSpec(2, 2)")
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[P(2, 1)], out_shardings=[P(4, 1)]), 422, "same number of total partitions")


def behaviour_S5_scalars_say_null(s):
    refused(ask(s, SCALE, [FOUR, 2], in_shardings=[P(2, 1), P()]), 422, "same number of total partitions", "say null")
    assert ok(ask(s, SCALE, [FOUR, 2], in_shardings=[P(2, 1), None]))["partitions"]["num_partitions"] == 2


def behaviour_S6_a_spec_has_an_entry_for_each_dimension(s):
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[P(2)]), 422, "PartitionSpec(2) has 1 entries", "rank 2")


def behaviour_S7_all_null_is_one_device(s):
    scalar = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    answer = ok(ask(s, scalar, [1.0], in_shardings=[None], out_shardings=[None], results={"encoding": "array"}))
    assert len(shards(s, answer["results"][0]["array"])) == 1 and data(s, answer["results"][0]["array"]) == 1.0


def behaviour_S8_a_number_of_partitions_overrides(s):
    answer = ok(ask(s, NEGATE, [SQUARE], in_shardings=[None], out_shardings=[None], num_partitions=2, results={"encoding": "array"}))
    held = buffers(s, answer["results"][0]["array"])
    assert len(held) == 2 and held[0] == held[1] == [[-v for v in row] for row in SQUARE]


def constrained(spec, size=8, devices=2):
    """x constrained in the old notation, as sharded_jit's own programs are."""
    return (f"module attributes {{mhlo.num_partitions = {devices} : i32}} {{\n"
            f"  func.func @main(%x: tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32> {{\n"
            f'    %0 = stablehlo.custom_call @Sharding(%x) {{backend_config = "", mhlo.sharding = "{spec}"}} : (tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>\n'
            f"    %1 = stablehlo.negate %0 : tensor<{size}x{size}xf32>\n    return %1 : tensor<{size}x{size}xf32> }} }}")


def behaviour_S9_inner_constraints_decide_where_nothing_outside_does(s):
    for text in (constrained("{devices=[2,1]0,1}"), CALLS):
        arguments = [SQUARE] if text is not CALLS else [list(range(8))]
        answer = ok(ask(s, text, arguments, in_shardings=[None], out_shardings=[None], results={"encoding": "array"}))
        assert len(shards(s, answer["results"][0]["array"])) == 2


def behaviour_S10_inner_constraints_of_another_total_are_refused(s):
    text = INNER.replace('"a"=2, "b"=2', '"a"=2').replace("CONSTRAINT", '%1 = sdy.sharding_constraint %0 <@mesh, [{}, {"a"}]> : tensor<4x8xf32>')
    refused(ask(s, text, [[[1.0] * 8] * 4], in_shardings=[P(2, 2)]), 422, "total partitions: 2", "expected 4", '"a"=2', "constraints")


def behaviour_S11_a_replicated_inner_constraint_never_conflicts(s):
    text = constrained("{replicated}").replace("module attributes {mhlo.num_partitions = 2 : i32} {", "module {")
    answer = ok(ask(s, text, [SQUARE], in_shardings=[P(2, 2)], out_shardings=[P(2, 2)]))
    assert answer["results"][0]["data"] == [[-v for v in row] for row in SQUARE] and answer["partitions"]["num_partitions"] == 4


TWO = ["--devices", "8", "--processes", "2"]


@own_server(*TWO)
def behaviour_S13_some_devices_of_several_processes_are_not_implemented(s):
    six = "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> { return %x : tensor<6xf32> }"
    refused(ask(s, six, [[0] * 6], in_shardings=[P(6)], as_process=0), 501, "all 8 devices")


@own_server(*TWO)
def behaviour_S14_the_local_number_has_to_be_said(s):
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[P(8, 1)], as_process=0), 422, "local_num_partitions", "8 partitions", "4 devices")
    assert ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(8, 1)], as_process=0, local_num_partitions=4))["partitions"]["local_num_partitions"] == 4


def behaviour_S15_the_local_number_is_the_number_where_it_fits(s):
    assert ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(2, 2)]))["partitions"] == {"num_partitions": 4, "local_num_partitions": 4, "devices": [0, 1, 2, 3]}


@own_server(*TWO)
def behaviour_S16_the_local_number_is_not_more_than_there_are(s):
    refused(ask(s, NEGATE, [SQUARE], in_shardings=[P(8, 1)], as_process=0, local_num_partitions=5), 422, "5", "4 devices of the process")


@own_server(*TWO)
def behaviour_S17_the_first_devices_are_taken(s):
    devices = lambda parts, **more: ok(ask(s, NEGATE, [SQUARE], in_shardings=[parts], **more))["partitions"]["devices"]
    assert devices(P(2, 1)) == [0, 1] and devices(P(2, 1), as_process=1) == [4, 5]
    assert devices(P(8, 1), as_process=1, local_num_partitions=4) == list(range(8))


def behaviour_S18_platforms_that_are_not_here(s):
    refused(ask(s, NEGATE, [SQUARE], platform="foo"), 501, "not supported for")
    ok(ask(s, NEGATE, [SQUARE], platform="cpu"))


def behaviour_S19_devices_count_row_major_over_the_parts(s):
    index = [shard["index"] for shard in ok(resolve(s, shape=[4, 8], parts=[2, 2]))["shards"]]
    assert index == [[[0, 2], [0, 4]], [[0, 2], [4, 8]], [[2, 4], [0, 4]], [[2, 4], [4, 8]]]
    small = "func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }"
    array = ok(ask(s, small, [SQUARE[:4]], in_shardings=[P(2, 2)], out_shardings=[P(2, 2)], results={"encoding": "array"}))["results"][0]["array"]
    assert [shard["index"] for shard in shards(s, array)] == index


def behaviour_S20_null_is_a_whole_copy_on_each_device(s):
    array = ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(4, 1)], out_shardings=[None], results={"encoding": "array"}))["results"][0]["array"]
    held = buffers(s, array)
    assert len(held) == 4 and all(buffer == [[-v for v in row] for row in SQUARE] for buffer in held)


def behaviour_S21_results_lie_by_their_spec(s):
    array = ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(1, 2)], out_shardings=[P(2, 1)], results={"encoding": "array"}))["results"][0]["array"]
    assert [(shard["device"], shard["shape"]) for shard in shards(s, array)] == [(0, [4, 8]), (1, [4, 8])]
    assert buffers(s, array)[1] == [[-v for v in row] for row in SQUARE[4:]]


def behaviour_S22_the_whole_shape_from_the_local_one(s):
    assert ok(resolve(s, local_shape=[8, 8], parts=[4, 1], local_parts=[2, 1]))["shape"] == [16, 8]
    refused(resolve(s, local_shape=[8, 8], parts=[3, 1], local_parts=[2, 1]), 422, "3 % 2 != 0")


def behaviour_S23_the_local_shape_from_the_whole_one(s):
    assert ok(resolve(s, shape=[16, 8], parts=[4, 1], local_parts=[2, 1]))["local_shape"] == [8, 8]
    refused(resolve(s, shape=[15, 8], parts=[4, 1], local_parts=[2, 1]), 422, "15 % 2 != 0")


def behaviour_S24_local_parts_are_the_parts_where_nothing_is_said(s):
    answer = ok(resolve(s, shape=[8, 8], parts=[2, 1]))
    assert answer["local_parts"] == [2, 1] and answer["local_shape"] == [8, 8]


def behaviour_S25_without_a_spec_nothing_is_scaled(s):
    answer = ok(resolve(s, shape=[8, 8], num_partitions=4))
    assert answer["shard_shape"] == [8, 8] and answer["is_fully_replicated"] is True and len(answer["shards"]) == 4


def behaviour_S26_keywords_are_not_implemented(s):
    refused(ask(s, NEGATE, [SQUARE], keywords={"x": 1}), 501, "keyword")


@own_server()
def behaviour_S27_static_values_are_constants_of_the_program(s):
    for k, compiled in ((3, 1), (4, 2), (3, 2)):
        answer = run(s, SCALE, [FOUR], static={"1": k})
        assert answer["results"][0]["data"] == [[k * v for v in row] for row in FOUR]
        assert lowered(s)["count"] == compiled, (k, lowered(s))


def behaviour_S28_static_arguments_need_no_spec(s):
    answer = ok(ask(s, SCALE, [FOUR], static={"1": 2}, in_shardings=[P(2, 1)], out_shardings=[P(2, 1)]))
    assert answer["results"][0]["data"] == [[2 * v for v in row] for row in FOUR] and answer["partitions"]["num_partitions"] == 2
    refused(ask(s, SCALE, [FOUR], static={"1": 2}, in_shardings=[P(2, 1), None]), 422, "2 entries for 1 values")


def behaviour_S29_static_arguments_are_there(s):
    refused(ask(s, NEGATE, [SQUARE], static={"2": 1}), 422, "static argument 2", "only 1 positional argument,", "must be passed positionally")
    refused(ask(s, SCALE, [FOUR], static={"2": 1}), 422, "only 2 positional arguments,")


def behaviour_S30_arguments_that_are_no_arrays_are_refused(s):
    refused(ask(s, SCALE, [FOUR, "three"]), 422, "/arguments/1")
    refused(ask(s, SCALE, [FOUR, {"three": 3}]), 422, "/arguments/1")


@own_server()
def behaviour_S31_an_equal_call_compiles_nothing(s):
    for _ in range(2):
        ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(2, 1)], out_shardings=[P(2, 1)]))
    assert lowered(s) == {"count": 1, "hits": 1}


@own_server()
def behaviour_S32_another_spec_of_the_result_is_another_entry(s):
    for out in (P(2, 1), P(1, 2)):
        ok(ask(s, NEGATE, [SQUARE], in_shardings=[P(2, 1)], out_shardings=[out]))
    assert lowered(s)["count"] == 2


def behaviour_S35_specs_as_xla_writes_them(s):
    assert ok(resolve(s, shape=[8, 8], parts=[2, 1]))["op_sharding"] == "{devices=[2,1]0,1}"
    assert ok(resolve(s, shape=[8, 8], num_partitions=2))["op_sharding"] == "{replicated}"


def behaviour_S37_a_constraint_outside_of_a_program(s):
    array = upload(s, range(64), [8, 8])["id"]
    refused(s.ask("POST", f"/v1/arrays/{array}:reshard", {"parts": [2, 1]}), 501, "outside of a partitioned program")
    eager = ok(s.ask("POST", f"/v1/arrays/{array}:reshard", {"mesh": mesh(s, ["x"], [0, 1]), "spec": [["x"]]}), 201)
    assert eager["shard_shape"] == [4, 8]


def behaviour_S41_replicas_beside_partitions_are_not_implemented(s):
    text = "module attributes {mhlo.num_replicas = 2 : i32} { " + NEGATE + " }"
    refused(ask(s, text, [SQUARE]), 501, "2 replicas")

# What jax.lax.infeed(token, shape, partitions=...) prints: the token's sharding comes last.
INFEED = """func.func @main(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %y:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> {mhlo.sharding = "{{devices=[2,1]<=[2]}, {replicated}}"} : (!stablehlo.token) -> (tensor<8x2xf32>, !stablehlo.token)
  %z:2 = "stablehlo.infeed"(%y#1) <{infeed_config = ""}> {mhlo.sharding = "{{devices=[1,2]<=[2]}, {replicated}}"} : (!stablehlo.token) -> (tensor<8x2xf32>, !stablehlo.token)
  %w:2 = "stablehlo.infeed"(%z#1) <{infeed_config = ""}> {mhlo.sharding = "{{replicated}, {replicated}}"} : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
  %1 = stablehlo.add %x, %y#0 : tensor<8x2xf32>
  %2 = stablehlo.add %1, %z#0 : tensor<8x2xf32>
  %3 = stablehlo.broadcast_in_dim %w#0, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
  %4 = stablehlo.add %2, %3 : tensor<8x2xf32>
  return %4 : tensor<8x2xf32> }"""


def behaviour_S40_infeed_parts_count(s):
    f32 = lambda array: {"dtype": "float32", "shape": list(array.shape), "data": array.tolist()}
    parts = lambda *pieces: {"parts": [{"device": n, "values": [f32(piece)]} for n, piece in enumerate(pieces)]}
    x, y, z = (np.arange(16, dtype=np.float32).reshape(8, 2) + k for k in (0, 100, 1000))
    w = np.array(0.5, dtype=np.float32)
    at = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    feed = lambda entry, status=201: ok(s.ask("POST", f"/v1/sessions/{at}/infeed", entry), status)
    job = lambda **more: s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": INFEED}, "arguments": [x.tolist()], **more})
    rows, columns, same = parts(y[:4], y[4:]), parts(z[:, :1], z[:, 1:]), parts(w, w)
    expected = (x + y + z + w).tolist()
    # the infeeds alone say on how many devices the program runs
    accepted = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": INFEED}, "arguments": [x.tolist()]}, {"Prefer": "respond-async"}), 202)["id"]
    for entry in (rows, columns, same):
        assert ok(s.ask("GET", f"/v1/jobs/{accepted}"))["state"] in ("queued", "running")
        feed(entry)
    done = ok(s.ask("GET", f"/v1/jobs/{accepted}?wait=30"))
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == expected, done
    # counts that agree, from outside and from the infeeds; and those that do not
    inline = [rows, columns, same]
    assert ok(job(in_shardings=[P(2, 1)], infeed=inline))["results"][0]["data"] == expected
    assert ok(job(num_partitions=2, infeed=inline))["partitions"]["num_partitions"] == 2
    refused(job(in_shardings=[P(4, 1)], infeed=inline), 422, "total partitions: 2", "expected 4")
    refused(job(num_partitions=4, infeed=inline), 422, "total partitions: 2", "expected 4")
    # what is fed counts, too: parts, and stored arrays with a sharding of their own
    refused(job(infeed=[parts(y[:2], y[2:4], y[4:6], y[6:])]), 422, "fed in 4 parts", "2 devices")
    four = upload(s, y.ravel(), [8, 2], mesh(s, ["x"], grid(4)), "x,")["id"]
    refused(job(infeed=[{"values": [{"array": four}]}]), 422, "arrays over 4 devices", "runs on 2")
    two = upload(s, y.ravel(), [8, 2], mesh(s, ["x"], grid(2)), "x,")["id"]
    assert ok(job(infeed=[{"values": [{"array": two}]}, columns, same]))["results"][0]["data"] == expected
    # parts are the shards that the text says, replicas agree
    refused(job(infeed=[columns]), 422, "part of device 0", "8x1xf32", "4x2xf32")
    refused(job(infeed=[rows, columns, parts(w, w + 1)]), 422, "part of device 1", "differs")
    assert ok(job(infeed=[{"values": [f32(y)]}, {"values": [f32(z)]}, {"values": [f32(w)]}]))["results"][0]["data"] == expected, "whole values"


@own_server()
def behaviour_S39_compiles_are_logged(s):
    """As warnings with --log-compiles, else on level debug: function, devices, types of the arguments."""
    s.stop()
    for level, options in (("warning", ["--log-compiles"]), ("debug", ["--log-level", "debug"]), (None, [])):
        with tempfile.TemporaryFile() as lines:
            with Meshd(s.binary, *DEVICES, "--log-format", "json", *options, log=lines) as own:
                for _ in range(2):
                    ok(ask(own, "module @jit_negate { " + NEGATE + " }", [SQUARE], in_shardings=[P(2, 1)]))
            lines.seek(0)
            events = [event for event in map(json.loads, lines.read().decode().splitlines()) if event["event"] == "compile"]
        if level is None:
            assert events == []
            continue
        assert len(events) == 1, "the second run finds it ready"
        assert (events[0]["level"], events[0]["function"], events[0]["devices"], events[0]["arguments"]) == (level, "jit_negate", 2, "8x8xf32")


main(globals())
