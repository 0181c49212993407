#!/usr/bin/env python3
"""Shardings in GSPMD's older notation against the built binary: where each part of a result lies, and that answers stay the same
whatever orders of devices a program mixes. Usage: gspmd_test.py BIN"""
import sys

import numpy

from server import Meshd

# A sharding of an 8x12 value over 8 devices, and the devices by tile: (tile of the value, array of devices with one more dimension
# for those that hold a copy).
IOTA = numpy.arange(8)
PLACES = {
    "{devices=[8,1]<=[8]}": IOTA.reshape(8, 1, 1),
    "{devices=[2,4]<=[8]}": IOTA.reshape(2, 4, 1),
    "{devices=[2,4]<=[4,2]T(1,0)}": IOTA.reshape(4, 2).T.reshape(2, 4, 1),
    "{devices=[4,2]<=[2,2,2]T(2,0,1)}": IOTA.reshape(2, 2, 2).transpose(2, 0, 1).reshape(4, 2, 1),
    "{devices=[1,4,2]<=[8] last_tile_dim_replicate}": IOTA.reshape(1, 4, 2),
    "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dims={replicated}}": IOTA.reshape(4, 2).T.reshape(2, 1, 4),
    "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, replicated}}": IOTA.reshape(2, 1, 4),
    "{devices=[2,4]0,1,2,3,4,5,6,7}": IOTA.reshape(2, 4, 1),
    "{devices=[2,4]0,4,1,5,2,6,3,7}": numpy.array([0, 4, 1, 5, 2, 6, 3, 7]).reshape(2, 4, 1),
    # Orders that no transposition says: a ring, a reversal, two exchanged.
    "{devices=[4,2]0,1,3,2,5,4,7,6}": numpy.array([0, 1, 3, 2, 5, 4, 7, 6]).reshape(4, 2, 1),
    "{devices=[2,4]7,6,5,4,3,2,1,0}": numpy.array([7, 6, 5, 4, 3, 2, 1, 0]).reshape(2, 4, 1),
    "{devices=[2,2,2]0,1,2,3,4,5,7,6 last_tile_dim_replicate}": numpy.array([0, 1, 2, 3, 4, 5, 7, 6]).reshape(2, 2, 2),
    "{device_ids_in_wire_form}": numpy.array([3, 1, 2, 0]).reshape(2, 2, 1),
}
WIRE = {"{device_ids_in_wire_form}": r"\08\03\1A\02\02\02\22\04\03\01\02\00"}

HOSTILE = {
    "{devices=[2,3]<=[8]}": "has tiles [2,3] for 6 devices, but <=[8] are 8",
    "{devices=[4,2]0,1,2,3,4,5,6,6}": "lists device 6 more than once",
    "{devices=[2,2]<=[4]T(0,1,2)}": "which is no permutation of the 1 dimensions",
    "{devices=[2,2,2]<=[8]}": "the sharding has 3 dimensions, but the rank is 2",
    "{devices=[2]0,99}": "lists device 99 among 2 devices",
    "{devices=[1048576,1048576]<=[2]}": "at most 1048576 devices",
    "{devices=[1073741824]<=[1073741824]}": "a number up to 1048576",
    "{devices=[2,2]<=[4] last_tile_dims={manual,maximal,other}}": "subgroup that is maximal",
    "{replicated}}": "expected nothing behind the sharding",
    "{" * 100: "expected",
    "{{replicated}, {replicated}}": "of one value has 2 shardings, expected 1",
    "{metadata={": "expected '}' behind the metadata",
    r"\08\63": "expected a kind of sharding from 0 to 6, not 99",
    r"\1A\7F": "expected 127 bytes more, there are 0",
}


def program(strings, devices=8):
    """@main negates its argument once for each string; the results are sharded so."""
    results = ", ".join(f'tensor<8x12xi32> {{mhlo.sharding = "{s}"}}' for s in strings)
    ops = "\n".join(f"%{i} = stablehlo.negate %a : tensor<8x12xi32>" for i in range(len(strings)))
    values = ", ".join(f"%{i}" for i in range(len(strings)))
    types = ", ".join("tensor<8x12xi32>" for _ in strings)
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32}} {{
  func.func @main(%a: tensor<8x12xi32>) -> ({results}) {{
    {ops}
    return {values} : {types}
  }}
}}"""


VALUE = numpy.arange(96, dtype=numpy.int32).reshape(8, 12)


def ask(server, text, arguments, encoding="json"):
    return server.ask("POST", "/v1/run", {"program": {"format": "stablehlo", "text": text}, "arguments": [a.tolist() for a in arguments],
                                          "results": {"encoding": encoding}})


def places(server):
    for string, devices in PLACES.items():
        status, _, answer = ask(server, program([WIRE.get(string, string)], devices=devices.size), [VALUE], "array")
        assert status == 200, (string, answer)
        array = answer["results"][0]["array"]
        shards = server.ask("GET", f"/v1/arrays/{array}/shards")[2]["items"]
        held = {shard["device"]: tuple(map(tuple, shard["index"])) for shard in shards}
        rows, columns = 8 // devices.shape[0], 12 // devices.shape[1]
        for (r, c, _), device in numpy.ndenumerate(devices):
            expected = ((r * rows, (r + 1) * rows), (c * columns, (c + 1) * columns))
            assert held[device] == expected, f"{string}: device {device} holds {held[device]}, expected {expected}"
        got = server.ask("GET", f"/v1/arrays/{array}/data?format=json")[2]
        assert numpy.array_equal(numpy.array(got["data"]), -VALUE), string


def mixed_orders(server):
    """All orders in one program: the values stay right."""
    strings = [s for s, devices in PLACES.items() if devices.size == 8]
    status, _, answer = ask(server, program(strings), [VALUE])
    assert status == 200, answer
    for string, result in zip(strings, answer["results"]):
        assert numpy.array_equal(numpy.array(result["data"]), -VALUE), string
    text = """module attributes {mhlo.num_partitions = 6 : i32} {
  func.func @main(%a: tensor<6x6xi32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}, %b: tensor<6x6xi32> {mhlo.sharding = "{devices=[3,2]<=[6]}"})
      -> (tensor<6x6xi32> {mhlo.sharding = "{devices=[2,3]<=[2,3]T(1,0)}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[6,1]1,0,2,3,5,4}"} : (tensor<6x6xi32>) -> tensor<6x6xi32>
    %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi32>
    %2 = stablehlo.custom_call @Sharding(%1) {mhlo.sharding = "{devices=[1,2,3]<=[6] last_tile_dim_replicate}"} : (tensor<6x6xi32>) -> tensor<6x6xi32>
    %3 = stablehlo.add %2, %a {mhlo.sharding = "{devices=[3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"} : tensor<6x6xi32>
    return %3 : tensor<6x6xi32>
  }
}"""
    a, b = numpy.arange(36).reshape(6, 6), numpy.arange(36, 72).reshape(6, 6)
    status, _, answer = ask(server, text, [a, b])
    assert status == 200, answer
    assert numpy.array_equal(numpy.array(answer["results"][0]["data"]), a @ b + a)


def manual_over_a_list(server):
    """A manual computation over a ring: each device is asked with the part that its place in the list gives it."""
    ring = "0,1,3,2"
    text = f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%a: tensor<8xi32>) -> tensor<8xi32> {{
    %0 = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = "{{devices=[4]{ring}}}"}} : (tensor<8xi32>) -> tensor<8xi32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} : (tensor<8xi32>) -> tensor<2xi32>
    %2 = call @body(%1) : (tensor<2xi32>) -> tensor<2xi32>
    %3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{{manual}}"}} : (tensor<2xi32>) -> tensor<2xi32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = "{{devices=[4]{ring}}}"}} : (tensor<2xi32>) -> tensor<8xi32>
    return %4 : tensor<8xi32>
  }}
  func.func private @body(%a: tensor<2xi32>) -> tensor<2xi32> {{
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    return %2 : tensor<2xi32>
  }}
}}"""
    status, _, answer = ask(server, text, [numpy.arange(8)])
    assert status == 200, answer
    assert answer["results"][0]["data"] == [0, 0, 1, 1, 3, 3, 2, 2], answer


def groups_of_parameters(server):
    """shard_as on an argument and a result: they end up cut alike."""
    text = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8xi32> {mhlo.sharding = "{devices=[4]<=[4] shard_as 1}"}, %b: tensor<8xi32> {mhlo.sharding = "{unknown shard_as 1}"})
      -> (tensor<8xi32>, tensor<8xi32> {mhlo.sharding = "{unknown shard_like 1}"}) {
    return %a, %b : tensor<8xi32>, tensor<8xi32>
  }
}"""
    status, _, answer = ask(server, text, [numpy.arange(8), numpy.arange(8)], "array")
    assert status == 200, answer
    for result in answer["results"]:
        document = server.ask("GET", f"/v1/arrays/{result['array']}")[2]
        assert document["shard_count"] == 4, document


def hostile(server):
    for string, said in HOSTILE.items():
        status, _, answer = ask(server, program([string.replace('"', '\\"')]), [VALUE])
        assert status == 422 and said in answer["detail"], (string, status, answer)


def main():
    with Meshd(sys.argv[1]) as server:
        for test in (places, mixed_orders, manual_over_a_list, groups_of_parameters, hostile):
            test(server)
            print(f"{test.__name__}: held")


if __name__ == "__main__":
    main()
