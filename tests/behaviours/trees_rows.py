#!/usr/bin/env python3
"""Arguments: trees, static values, donation."""
import json

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


main(globals())
