#!/usr/bin/env python3
"""Partitioned programs: rows of sharded_jit, with names of axes and with integer specs."""
import numpy as np

from harness import DEVICES, data, floats, grid, main, mesh, ok, own_server, refused, run, shards, upload

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
    expected = run(s, PLAIN, [x])["results"][0]["data"]
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


main(globals())
