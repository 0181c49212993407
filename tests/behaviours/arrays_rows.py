#!/usr/bin/env python3
"""Global arrays: which index is where (G1 to G17), what is refused, metadata, and arrays that jobs give (G37 to G40).

Fixture F of the rows: mesh x=4, y=2 over devices 0..7, shape (8,2), values 0..15."""
import json
import random

from harness import DEVICES, RAW, data, floats, grid, main, mesh, ok, own_server, refused, run, shards, upload

ADD = "func.func @main(%a: tensor<8x2xf32>, %b: tensor<8x2xf32>) -> tensor<8x2xf32> { %0 = stablehlo.add %a, %b : tensor<8x2xf32> return %0 : tensor<8x2xf32> }"


def fixture(s, spec=None):
    return upload(s, range(16), [8, 2], mesh(s, ["x", "y"], grid(4, 2)), spec)


def indices(s, array):
    return [shard["index"] for shard in shards(s, array["id"])]


def replicas(s, array):
    return [shard["replica_id"] for shard in shards(s, array["id"])]


def json_spec(s, array, spec, **more):
    """The array cut by a spec as JSON has it."""
    at = f"/v1/arrays/{array['id']}:reshard"
    return s.ask("POST", at, {"mesh": mesh(s, ["x", "y"], grid(4, 2)), "spec": spec, **more})


def behaviour_G1_names_products_and_none_in_a_spec(s):
    assert fixture(s, "x")["shard_shape"] == [2, 2], "shorter than the rank: the rest is whole"
    assert fixture(s, "x.y")["shard_shape"] == [1, 2] and fixture(s, ",y")["shard_shape"] == [8, 1]
    assert ok(json_spec(s, fixture(s), ["x", None]), 201)["shard_shape"] == [2, 2]


def behaviour_G2_lists_are_products(s):
    assert ok(json_spec(s, fixture(s), [["x", "y"]]), 201)["shard_shape"] == [1, 2]


def behaviour_G3_shard_shapes(s):
    for spec, shape in (("x,y", [2, 1]), ("x", [2, 2]), ("y", [4, 2]), (",y", [8, 1]), ("x.y", [1, 2]), ("", [8, 2])):
        assert fixture(s, spec)["shard_shape"] == shape, spec


def behaviour_G4_the_index_of_each_device(s):
    held = indices(s, fixture(s, "x,y"))
    assert held[0] == [[0, 2], [0, 1]] and held[1] == [[0, 2], [1, 2]] and held[7] == [[6, 8], [1, 2]]
    assert indices(s, fixture(s, "x"))[3] == [[2, 4], [0, 2]], "a dimension that is not cut is a full range"


def behaviour_G5_the_first_name_of_a_product_is_the_major_one(s):
    rows = lambda spec: [index[0] for index in indices(s, fixture(s, spec))]
    assert rows("y.x") == [[r, r + 1] for r in (0, 4, 1, 5, 2, 6, 3, 7)]
    assert rows("x.y") == [[r, r + 1] for r in range(8)]


def behaviour_G6_dimensions_need_not_follow_the_axes(s):
    held = indices(s, upload(s, range(32), [8, 4], mesh(s, ["x", "y"], grid(4, 2)), "y,x"))
    assert held[0] == [[0, 4], [0, 1]] and held[1] == [[4, 8], [0, 1]] and held[2] == [[0, 4], [1, 2]]


def behaviour_G7_replicas_are_counted_in_mesh_order(s):
    for spec, expected in (("x", [0, 1] * 4), ("y", [0, 0, 1, 1, 2, 2, 3, 3]), ("", list(range(8))), ("x,y", [0] * 8)):
        assert replicas(s, fixture(s, spec)) == expected, spec


def behaviour_G8_distinct_shards_are_as_many_as_the_cuts_make(s):
    rng = random.Random(8)
    for _ in range(30):
        sizes = rng.choice([[8], [2, 4], [2, 2, 2], [4, 2], [1, 8], [3, 2]])
        names = ["a", "b", "c"][:len(sizes)]
        axes = rng.sample(names, rng.randint(0, len(names)))
        dims = [[], []]
        for axis in axes:
            dims[rng.randint(0, 1)].append(axis)
        ways = [1, 1]
        for d, dim in enumerate(dims):
            for axis in dim:
                ways[d] *= sizes[names.index(axis)]
        shape = [ways[0] * rng.randint(1, 3), ways[1] * rng.randint(1, 3)]
        array = upload(s, range(shape[0] * shape[1]), shape, mesh(s, names, grid(*sizes)), ",".join(".".join(dim) for dim in dims))
        held = shards(s, array["id"])
        assert len({json.dumps(shard["index"]) for shard in held}) == array["shard_count"] == ways[0] * ways[1], (sizes, dims)
        assert sum(shard["replica_id"] == 0 for shard in held) == array["shard_count"]


def behaviour_G9_uneven_arrays_have_short_last_shards_unless_refused(s):
    mesh_id = mesh(s, ["x"], grid(4))
    refused(s.ask("POST", f"/v1/arrays?dtype=float32&shape=7,2&mesh={mesh_id}&spec=x&uneven=refuse", floats(range(14)), RAW), 422,
            "dimension 0", "size 7", "divide by 4")
    array = upload(s, range(14), [7, 2], mesh_id, "x")
    assert array["shard_shape"] == [2, 2] and indices(s, array)[3] == [[6, 7], [0, 2]]
    assert data(s, array["id"]) == [[2.0 * i, 2.0 * i + 1] for i in range(7)]


def behaviour_G10_an_axis_stands_once(s):
    refused(json_spec(s, fixture(s), [["x"], ["x"]]), 422, "at most one positional dimension", "x")
    refused(json_spec(s, fixture(s), [["x", "x"]]), 422, "at most one positional dimension")


def behaviour_G11_unknown_axes_are_refused(s):
    refused(json_spec(s, fixture(s), [["q"]]), 422, "'q' is not an axis")


def behaviour_G12_a_spec_is_not_longer_than_the_rank(s):
    mesh_id = mesh(s, ["x"], grid(4))
    refused(s.ask("POST", f"/v1/arrays?dtype=float32&shape=8&mesh={mesh_id}&spec=x,", floats(range(8)), RAW), 422, "rank at least 2")


def behaviour_G13_three_dimensions(s):
    mesh_id = mesh(s, ["x", "y", "z"], grid(2, 2, 2))
    cut = lambda spec: upload(s, range(64), [8, 4, 2], mesh_id, spec)
    assert cut("x,y,z")["shard_shape"] == [4, 2, 1]
    array = cut("x.y,z")
    assert array["shard_shape"] == [2, 2, 2] and indices(s, array)[1] == [[0, 2], [2, 4], [0, 2]]
    array = cut("z")
    assert array["shard_shape"] == [4, 4, 2] and replicas(s, array) == [0, 0, 1, 1, 2, 2, 3, 3]


def behaviour_G14_one_dimension(s):
    mesh_id = mesh(s, ["x"], grid(8))
    assert upload(s, range(16), [16], mesh_id, "x")["shard_shape"] == [2]
    whole = upload(s, range(16), [16], mesh_id, "")
    assert whole["shard_shape"] == [16] and replicas(s, whole) == list(range(8))


def behaviour_G15_arrays_of_size_0(s):
    array = upload(s, [], [0], mesh(s, ["x"], grid(8)), "")
    assert indices(s, array) == [[[0, 0]]] * 8 and replicas(s, array) == list(range(8)) and array["shard_shape"] == [0]


def behaviour_G16_a_mesh_may_leave_devices_out(s):
    array = upload(s, range(16), [8, 2], mesh(s, ["x", "y"], grid(2, 2)), "x,y")
    assert array["shard_shape"] == [4, 1] and replicas(s, array) == [0] * 4 and len(shards(s, array["id"])) == 4


def behaviour_G17_an_axis_of_size_1_cuts_nothing(s):
    mesh_id = mesh(s, ["x", "y"], grid(1, 8))
    cut, whole = upload(s, range(16), [8, 2], mesh_id, "x"), upload(s, range(16), [8, 2], mesh_id, "")
    assert indices(s, cut) == indices(s, whole) and indices(s, cut)[0] == [[0, 8], [0, 2]] and cut["shard_count"] == 1


def behaviour_G22_results_are_not_checked_again(s):
    """Nothing is validated twice: a stored result costs what an inline one does; here only that it is right and sharded as planned."""
    stored = run(s, ADD, [{"array": fixture(s, "x,y")["id"]}] * 2, results={"encoding": "array"})["results"][0]["array"]
    assert ok(s.ask("GET", "/v1/arrays/" + stored))["shard_shape"] == [2, 1]
    assert data(s, stored) == [[4.0 * i, 4.0 * i + 2] for i in range(8)]


def behaviour_G23_metadata(s):
    array = fixture(s, "x,y")
    assert (array["ndim"], array["size"], array["dtype"], array["shape"]) == (2, 16, "float32", [8, 2])
    assert array["mesh"] == mesh(s, ["x", "y"], grid(4, 2)) and array["sharding"] == {"spec": [["x"], ["y"]]}


def behaviour_G24_fully_replicated(s):
    assert fixture(s, "")["is_fully_replicated"] is True and fixture(s, "x")["is_fully_replicated"] is False
    assert upload(s, range(16), [8, 2], mesh(s, ["x", "y"], [[0]]), "x,y")["is_fully_replicated"] is True


def behaviour_G27_data_of_a_shard(s):
    array = fixture(s, "x.y")["id"]
    shard = lambda device: ok(s.ask("GET", f"/v1/arrays/{array}/shards/{device}?format=json"))["data"]
    assert shard(0) == [[0, 1]] and shard(1) == [[2, 3]] and shard(7) == [[14, 15]]


def behaviour_G37_results_lie_on_the_mesh_of_the_job(s):
    array = fixture(s, "x,y")
    stored = run(s, ADD, [{"array": array["id"]}] * 2, results={"encoding": "array"})["results"][0]["array"]
    made = ok(s.ask("GET", "/v1/arrays/" + stored))
    assert made["mesh"] == array["mesh"] and made["sharding"] == array["sharding"]


def behaviour_G38_arguments_must_lie_as_the_job_says(s):
    body = {"program": {"text": ADD}, "arguments": [{"array": fixture(s, "x,y")["id"]}, [[0, 0]] * 8]}
    same_mesh = {"axis_names": ["x", "y"], "devices": grid(4, 2)}
    other_spec = {**body, "mesh": same_mesh, "in_shardings": [{"spec": [["y"], ["x"]]}, None]}
    refused(s.ask("POST", "/v1/run", other_spec), 409, '{"x"}, {"y"}', '{"y"}, {"x"}', "reshard")
    other_mesh = {**body, "mesh": {"axis_names": ["x", "y"], "devices": grid(2, 2)}}
    refused(s.ask("POST", "/v1/run", other_mesh), 409, "[0,1,2,3,4,5,6,7]", "[0,1,2,3]")
    for asked in (other_spec, other_mesh):
        moved = ok(s.ask("POST", "/v1/run", {**asked, "reshard": True}))
        assert moved["results"][0]["data"] == [[2.0 * i, 2.0 * i + 1] for i in range(8)]


@own_server()
def behaviour_G40_trailing_none_is_the_same_spec(s):
    whole = [[0, 0]] * 8
    for spec in ([["x"]], [["x"], []], [["x"], None], ["x"]):
        run(s, ADD, [whole, whole], mesh={"axis_names": ["x"], "devices": grid(4)}, in_shardings=[{"spec": spec}, None])
    compiled = ok(s.ask("GET", "/v1/info"))["compile"]["lower"]
    assert compiled == {"count": 1, "hits": 3}, compiled
    scalar = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    run(s, scalar, [1], mesh={"axis_names": ["x"], "devices": grid(4)}, in_shardings=[{"spec": []}])
    refused(s.ask("POST", "/v1/run", {"program": {"text": scalar}, "arguments": [1], "mesh": {"axis_names": ["x"], "devices": grid(4)},
                                      "in_shardings": [{"spec": [[]]}]}), 422, "rank at least 1")


main(globals())
