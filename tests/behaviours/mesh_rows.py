#!/usr/bin/env python3
"""Meshes: rows M1 to M15, M22, M32, M33 (what a mesh is), and those of abstract meshes."""
import signal

from harness import DEVICES, data, floats, grid, main, mesh, ok, own_server, refused, run, shards, upload

NEGATE = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.negate %a : tensor<8xf32> return %0 : tensor<8xf32> }"
ON_MESH = """module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.negate %a : tensor<8xf32> return %0 : tensor<8xf32> } }"""


def post(s, **body):
    return s.ask("POST", "/v1/meshes", body)


def behaviour_M1_rank_and_names_agree(s):
    refused(post(s, axis_names=["x"], devices=grid(4, 2)), 422, "devices.ndim == 2", "len(axis_names) == 1")
    refused(post(s, axis_names=["x", "y"], devices=grid(4)), 422, "devices.ndim == 1", "len(axis_names) == 2")


def behaviour_M2_a_string_is_one_axis(s):
    made = ok(post(s, axis_names="data", devices=grid(4)), 201)
    assert made["axes"] == [{"name": "data", "size": 4}]


def behaviour_M3_nested_devices_and_no_ragged_ones(s):
    made = post(s, axis_names=["x", "y"], devices=[[0, 1], [2, 3]])[2]
    assert made["shape"] == [2, 2] and made["device_ids"] == [0, 1, 2, 3]
    for ragged in ([[0, 1], [2]], [0, [1]], [[0], 1]):
        refused(post(s, axis_names=["x", "y"], devices=ragged), 422, "nested unevenly")


@own_server()
def behaviour_M4_equal_meshes_share_an_id(s):
    first = ok(post(s, axis_names=["x", "y"], devices=grid(4, 2)), 201)
    assert ok(post(s, axis_names=["x", "y"], devices=grid(4, 2)), 200)["id"] == first["id"]
    assert ok(post(s, axes=first["axes"], devices=grid(8)), 200)["id"] == first["id"], "however it is written"
    assert s.stop() == 0
    s.start()
    again = ok(post(s, axis_names=["x", "y"], devices=grid(4, 2)), 200)
    assert again == first, "after a restart it is the same mesh"
    s.stop(signal.SIGKILL)
    s.start()
    assert ok(s.ask("GET", "/v1/meshes/" + first["id"])) == first


def behaviour_M5_any_change_is_another_mesh(s):
    ids = [mesh(s, ["x"], [0, 1, 2, 3]), mesh(s, ["x"], [1, 0, 2, 3]), mesh(s, ["y"], [0, 1, 2, 3]), mesh(s, ["x", "y"], grid(4, 2)),
           mesh(s, ["x", "y"], grid(2, 4)), mesh(s, ["y", "x"], grid(4, 2))]
    assert len(set(ids)) == 6
    assert mesh(s, ["x", "y"], grid(4, 2)) == ids[3]


def behaviour_M6_a_mesh_cannot_be_changed(s):
    body = {"axis_names": ["x", "y"], "devices": grid(4, 2)}
    at = "/v1/meshes/" + mesh(s, **{"names": body["axis_names"], "devices": body["devices"]})
    before = ok(s.ask("GET", at))
    refused(s.ask("PATCH", at, {**body, "axis_names": ["a", "b"]}), 409, "Cannot reassign attributes")
    assert ok(s.ask("PATCH", at, body)) == before == ok(s.ask("GET", at))


def behaviour_M7_a_mesh_keeps_its_own_devices(s):
    devices = grid(4)
    at = "/v1/meshes/" + mesh(s, ["m7"], devices)
    devices[0] = 7
    refused(s.ask("PATCH", at, {"axis_names": ["m7"], "devices": devices}), 409)
    assert ok(s.ask("GET", at))["device_ids"] == [0, 1, 2, 3]


def behaviour_M8_a_document_posted_back_is_the_same_mesh(s):
    for body in ({"axis_names": ["x", "y"], "devices": grid(2, 4)}, {"axes": [{"name": "x", "size": 3}]},
                 {"axis_names": ["x"], "devices": [3, 1], "axis_types": ["explicit"]}):
        document = post(s, **body)[2]
        again = ok(s.ask("POST", "/v1/meshes", document), 200)
        assert again["id"] == document["id"] and again == ok(s.ask("GET", "/v1/meshes/" + document["id"]))


def behaviour_M9_etags_agree_as_meshes_do(s):
    tag = lambda body: s.ask("POST", "/v1/meshes", body)[1]["ETag"]
    one = {"axis_names": ["x", "y"], "devices": grid(4, 2)}
    assert tag(one) == tag(one) == tag({"axes": [{"name": "x", "size": 4}, {"name": "y", "size": 2}], "device_ids": grid(8)})
    assert len({tag(one), tag({**one, "axis_names": ["y", "x"]}), tag({**one, "devices": grid(2, 4)}), tag({"axes": [{"name": "x", "size": 4}]})}) == 4


def behaviour_M10_axes_keep_their_order(s):
    made = ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))))
    assert [[axis["name"], axis["size"]] for axis in made["axes"]] == [["x", 4], ["y", 2]]
    made = ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["b", "a"], grid(2, 4))))
    assert [axis["name"] for axis in made["axes"]] == ["b", "a"], "order of the mesh, not of the alphabet"


def behaviour_M11_shape_has_the_sizes_in_order(s):
    assert ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))))["shape"] == [4, 2]


def behaviour_M12_size_is_the_product_and_0_without_axes(s):
    assert ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))))["size"] == 8
    assert ok(s.ask("GET", "/v1/meshes/" + mesh(s, [], 3)))["size"] == 0, "a scalar of devices"


def behaviour_M13_empty_means_size_0(s):
    assert ok(s.ask("GET", "/v1/meshes/" + mesh(s, [], 3)))["empty"] is True
    assert ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x"], grid(2))))["empty"] is False
    none = post(s, axes=[{"name": "x", "size": 0}, {"name": "y", "size": 2}])[2]
    assert none["empty"] is True and none["size"] == 0
    assert ok(s.ask("GET", "/v1/meshes/" + none["id"])) == none and ok(s.ask("POST", "/v1/meshes", none)) == none
    # It can be stored and asked about; nothing runs on it.
    body = {"program": {"text": NEGATE}, "arguments": [list(range(8))], "mesh": {"axes": none["axes"]}}
    refused(s.ask("POST", "/v1/run", body), 422, "axis 'x' has size 0", "empty_mesh")


def behaviour_M14_device_ids_have_the_shape_of_the_mesh(s):
    made = ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x", "y"], [[0, 1], [2, 3]])))
    assert made["device_ids"] == [0, 1, 2, 3] and made["shape"] == [2, 2], "flat, row-major, beside its shape"
    empty = post(s, axes=[])[2]
    assert empty["empty"] is True and "device_ids" not in empty, "the empty mesh has none"


def behaviour_M15_the_order_of_devices_is_that_of_the_run(s):
    order = [5, 2, 7, 0]
    stored = run(s, NEGATE, [list(range(8))], mesh={"axis_names": ["x"], "devices": order}, in_shardings=[{"spec": [["x"]]}],
                 results={"encoding": "array"})["results"][0]["array"]
    held = shards(s, stored)
    assert [shard["device"] for shard in held] == order
    assert [shard["index"] for shard in held] == [[[0, 2]], [[2, 4]], [[4, 6]], [[6, 8]]]


def behaviour_M22_a_mesh_as_text(s):
    at = "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))
    assert s.ask("GET", at + "?view=text")[2].strip() == b"Mesh('x': 4, 'y': 2)"
    assert s.ask("GET", at + "?view=repr")[2].strip() == b"Mesh(device_ids=[[0, 1], [2, 3], [4, 5], [6, 7]], axis_names=('x', 'y'))"
    empty = post(s, axes=[])[2]["id"]
    assert s.ask("GET", f"/v1/meshes/{empty}?view=repr")[2].strip() == b"Mesh(device_ids=[], axis_names=())"


def behaviour_M32_axis_names_in_messages_are_sorted(s):
    refused(post(s, axis_names=["y", "x", "y", "x"], devices=[[[[0]]]]), 422, "`x`, `y`")


def behaviour_M33_duplicates_and_unknown_devices_are_refused(s):
    refused(post(s, axis_names=["x", "x"], devices=[[0, 1]]), 422, "`x`")
    refused(post(s, axis_names=["x"], devices=[99]), 422, "no device 99")
    refused(post(s, axis_names=["x"], devices=[1, 1]), 422, "device 1 is named twice")


def abstract(s, *axes):
    status, _, document = post(s, axes=[{"name": name, "size": size} for name, size in axes])
    assert status in (200, 201), document
    return document


def behaviour_A1_without_devices_a_mesh_is_abstract(s):
    made = abstract(s, ("x", 4), ("y", 2))
    assert made["is_abstract"] is True and "device_ids" not in made and made["axes"][0] == {"name": "x", "size": 4}


def behaviour_A2_pairs_in_order_are_the_identity(s):
    assert abstract(s, ("x", 4), ("y", 2))["id"] == abstract(s, ("x", 4), ("y", 2))["id"]
    assert abstract(s, ("x", 4), ("y", 2))["id"] != abstract(s, ("y", 2), ("x", 4))["id"]


def behaviour_A3_size_of_an_abstract_mesh(s):
    assert abstract(s, ("x", 4), ("y", 2))["size"] == 8
    none = abstract(s)
    assert none["size"] == 0 and none["empty"] is True


def behaviour_A4_names_shape_and_text_of_an_abstract_mesh(s):
    made = abstract(s, ("x", 4), ("y", 2))
    assert [axis["name"] for axis in made["axes"]] == ["x", "y"] and made["shape"] == [4, 2]
    assert s.ask("GET", f"/v1/meshes/{made['id']}?view=repr")[2].strip() == b"AbstractMesh('x': 4, 'y': 2)"


def behaviour_A7_a_mesh_names_its_abstract_form(s):
    one, two = (ok(s.ask("GET", "/v1/meshes/" + mesh(s, ["x"], devices))) for devices in ([0, 1], [2, 3]))
    assert one["abstract"] == two["abstract"] == abstract(s, ("x", 2))["id"] and one["id"] != two["id"]
    assert ok(s.ask("GET", "/v1/meshes/" + one["abstract"]))["is_abstract"] is True


def behaviour_A8_one_program_runs_on_two_sets_of_devices(s):
    program = s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": ON_MESH})[2]["id"]
    for devices in ([0, 1], [6, 3]):
        answer = ok(s.ask("POST", "/v1/run", {"program": {"id": program}, "arguments": [list(range(8))],
                                              "mesh": {"axis_names": ["x"], "devices": devices}, "results": {"encoding": "array"}}))
        array = answer["results"][0]["array"]
        assert [shard["device"] for shard in shards(s, array)] == devices and data(s, array) == [-float(i) for i in range(8)]


def behaviour_A9_pinned_devices_and_arguments_must_agree(s):
    elsewhere = upload(s, range(8), [8], mesh(s, ["x"], [2, 3]), "x")["id"]
    body = {"program": {"text": ON_MESH}, "arguments": [{"array": elsewhere}], "mesh": {"axis_names": ["x"], "devices": [0, 1]}}
    refused(s.ask("POST", "/v1/run", body), 409, "[0,1]", "[2,3]")
    assert ok(s.ask("POST", "/v1/run", {**body, "reshard": True}))["results"][0]["data"] == [-float(i) for i in range(8)]


def behaviour_A10_resharding_by_an_abstract_mesh_checks_the_operand(s):
    array = upload(s, range(8), [8], mesh(s, ["x"], grid(4)), "x")["id"]
    reshard = lambda axes, spec: s.ask("POST", f"/v1/arrays/{array}:reshard", {"mesh": abstract(s, *axes)["id"], "spec": spec})
    refused(reshard([("x", 2)], [["x"]]), 422, "Mesh('x': 4)", "Mesh('x': 2)")
    moved = ok(reshard([("x", 4)], [[]]), 201)
    assert [shard["device"] for shard in shards(s, moved["id"])] == grid(4), "the devices come from the operand"


@own_server()
def behaviour_A11_another_set_of_devices_compiles_nothing(s):
    for devices in ([0, 1], [2, 3]):
        run(s, ON_MESH, [list(range(8))], mesh={"axis_names": ["x"], "devices": devices})
    counters = ok(s.ask("GET", "/v1/info"))["compile"]
    assert [counters[stage]["count"] for stage in ("parse", "lower", "bind")] == [1, 1, 2], counters


def behaviour_A12_meshes_of_a_program_may_have_any_number_of_devices(s):
    text = """module { sdy.mesh @four = <["y"=4]> sdy.mesh @two = <["x"=2], device_ids=[3, 1]> sdy.mesh @one = <[], device_ids=[2]>
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@four, [{"y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@two, [{"x"}]>},
          tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, []>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@four, [{"y"}]>}) {
        %0 = stablehlo.negate %a : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@two, [{"x"}]> : tensor<8xf32>
        %2 = stablehlo.add %1, %a : tensor<8xf32>
        return %1, %0, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32> } }"""
    program = lambda **more: s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [list(range(8))], **more})
    negative = [-float(i) for i in range(8)]
    assert [r["data"] for r in ok(program())["results"]] == [negative, negative, [0.0] * 8]
    # Device ids of the program are entries of the request's list.
    made = ok(program(mesh={"axis_names": ["d"], "devices": [7, 6, 5, 4]}, results={"encoding": "array"}))["results"]
    held = [[(shard["device"], shard["shape"]) for shard in shards(s, result["array"])] for result in made]
    assert held == [[(4, [4]), (6, [4])], [(5, [8])], [(7, [2]), (6, [2]), (5, [2]), (4, [2])]], held
    # By symbol: entry i of a list is the mesh's i-th lowest device id.
    four, two = {"axis_names": ["y"], "devices": [0, 2, 4, 6]}, {"axis_names": ["x"], "devices": [2, 6]}
    made = ok(program(meshes={"four": four, "two": two}, results={"encoding": "array"}))["results"]
    assert [shard["device"] for shard in shards(s, made[0]["array"])] == [6, 2]
    refused(program(meshes={"four": four, "two": {**two, "devices": [0, 1]}}), 422, "contradicts another mesh of the request")
    refused(program(mesh={"axis_names": ["x"], "devices": [0, 1]}), 422, "over 4 devices", "has 2")
    # Stored arrays stay where they are.
    elsewhere = upload(s, range(8), [8], mesh(s, ["y"], [1, 3, 5, 7]), "y")["id"]
    made = ok(s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [{"array": elsewhere}], "results": {"encoding": "array"}}))["results"]
    assert [shard["device"] for shard in shards(s, made[0]["array"])] == [7, 3]
    on_two = upload(s, range(8), [8], mesh(s, ["x"], [0, 1]), "x")["id"]
    refused(s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [{"array": on_two}]}), 409, "[0,1]", "[0,1,2,3]")


def behaviour_A13_arguments_in_different_orders_are_refused(s):
    add = NEGATE.replace("%a: tensor<8xf32>)", "%a: tensor<8xf32>, %b: tensor<8xf32>)").replace("stablehlo.negate %a", "stablehlo.add %a, %b")
    one, two = (upload(s, range(8), [8], mesh(s, ["x"], devices), "x")["id"] for devices in ([0, 1], [1, 0]))
    body = {"program": {"text": add}, "arguments": [{"array": one}, {"array": two}]}
    refused(s.ask("POST", "/v1/run", body), 409, "[0,1]", "[1,0]")
    moved = ok(s.ask("POST", f"/v1/arrays/{two}:reshard", {"mesh": mesh(s, ["x"], [0, 1]), "spec": [["x"]]}), 201)["id"]
    assert run(s, add, [{"array": one}, {"array": moved}])["results"][0]["data"] == [2.0 * i for i in range(8)]


main(globals())
