#!/usr/bin/env python3
"""Processes as labels on devices, and the meshes that sessions are inside of: rows M16 to M31, A5, A6."""
from harness import DEVICES, grid, main, mesh, ok, own_server, refused

TWO = ["--devices", "8", "--processes", "2"]
HALF = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.add %a, %a : tensor<8xf32> return %0 : tensor<8xf32> }"
WRONG = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.custom_call @nobody(%a) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }"


def session(s):
    return "/v1/sessions/" + ok(s.ask("POST", "/v1/sessions"), 201)["id"]


def enter(s, at, mesh_id):
    return s.ask("POST", at + "/mesh", {"mesh": mesh_id})


def names(environment):
    return [axis["name"] for axis in environment["axes"]]


@own_server(*TWO)
def behaviour_M16_local_devices_of_a_process(s):
    assert [device["process_index"] for device in ok(s.ask("GET", "/v1/devices"))["items"]] == [0] * 4 + [1] * 4
    at = "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))
    assert ok(s.ask("GET", at + "?as_process=1"))["local_devices"] == [4, 5, 6, 7]
    assert ok(s.ask("GET", at + "?as_process=0"))["local_devices"] == [0, 1, 2, 3]
    mixed = "/v1/meshes/" + mesh(s, ["x"], [6, 1, 4, 3])
    assert ok(s.ask("GET", mixed + "?as_process=1"))["local_devices"] == [6, 4], "in the order of the mesh"
    refused(s.ask("GET", at + "?as_process=2"), 422, "no process 2")


@own_server(*TWO)
def behaviour_M17_multi_process_meshes(s):
    multi = lambda devices, process: ok(s.ask("GET", f"/v1/meshes/{mesh(s, ['x'], devices)}?as_process={process}"))["is_multi_process"]
    assert multi(grid(8), 0) is True and multi(grid(4), 0) is False and multi(grid(4), 1) is True


@own_server(*TWO)
def behaviour_M18_the_local_mesh_is_the_hull(s):
    at = "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))
    local = ok(s.ask("GET", at + "/local?process=0"))
    assert local["axes"] == [{"name": "x", "size": 2}, {"name": "y", "size": 2}] and local["device_ids"] == [0, 1, 2, 3]
    assert ok(s.ask("GET", at + "/local?process=1"))["device_ids"] == [4, 5, 6, 7]


@own_server(*TWO)
def behaviour_M19_local_devices_form_a_contiguous_subcube(s):
    crossed = mesh(s, ["x", "y"], [[0, 4], [5, 1]])
    refused(s.ask("GET", f"/v1/meshes/{crossed}/local?process=0"), 422, "contiguous subcube", "device 4")


@own_server(*TWO)
def behaviour_M20_a_process_without_a_device_in_the_mesh(s):
    refused(s.ask("GET", f"/v1/meshes/{mesh(s, ['x'], grid(4))}/local?process=1"), 422, "process has no device in mesh")


@own_server(*TWO)
def behaviour_M21_local_meshes_are_interned_and_the_empty_one_is_its_own(s):
    at = "/v1/meshes/" + mesh(s, ["x", "y"], grid(4, 2))
    first = ok(s.ask("GET", at + "/local?process=1"))
    assert ok(s.ask("GET", at + "/local?process=1")) == first
    assert ok(s.ask("POST", "/v1/meshes", {"axis_names": ["x", "y"], "devices": grid(2, 2, first=4)}), 200)["id"] == first["id"]
    empty = s.ask("POST", "/v1/meshes", {"axes": []})[2]["id"]
    assert ok(s.ask("GET", f"/v1/meshes/{empty}/local"))["id"] == empty


def behaviour_M23_entering_and_leaving_meshes(s):
    at, one, two = session(s), mesh(s, ["x"], grid(4)), mesh(s, ["y"], grid(2))
    assert ok(enter(s, at, one))["mesh"] == one and ok(enter(s, at, two))["mesh"] == two
    assert ok(s.ask("DELETE", at + "/mesh"))["mesh"] == one
    assert ok(s.ask("GET", at + "/mesh"))["mesh"] == one


def behaviour_M24_a_failing_job_leaves_the_stack_as_it_is(s):
    at, one, two = session(s), mesh(s, ["x"], grid(4)), mesh(s, ["y"], grid(2))
    ok(enter(s, at, one))
    ok(enter(s, at, two))
    refused(s.ask("POST", at + "/jobs", {"program": {"text": WRONG}, "arguments": [list(range(8))]}), 422, "nobody")
    assert ok(s.ask("GET", at + "/mesh"))["mesh"] == two
    assert ok(s.ask("DELETE", at + "/mesh"))["mesh"] == one


def behaviour_M25_a_mesh_may_be_entered_again(s):
    at, one = session(s), mesh(s, ["x"], grid(4))
    ok(enter(s, at, one))
    assert ok(enter(s, at, one))["depth"] == 2
    assert ok(s.ask("DELETE", at + "/mesh"))["mesh"] == one
    assert ok(s.ask("DELETE", at + "/mesh"))["empty"] is True
    refused(s.ask("DELETE", at + "/mesh"), 409)


def behaviour_M26_the_stack_is_the_sessions_own(s):
    one, two = session(s), session(s)
    ok(enter(s, one, mesh(s, ["x"], grid(4))))
    assert ok(s.ask("GET", two + "/mesh"))["empty"] is True


@own_server("--devices", "8", "--no-mesh-stack")
def behaviour_M27_a_flag_forbids_entering(s):
    refused(enter(s, session(s), mesh(s, ["x"], grid(4))), 409, "Mesh context manager is disabled")


@own_server()
def behaviour_M28_the_mesh_of_the_session_is_part_of_the_compile_key(s):
    at = session(s)
    body = {"program": {"text": HALF}, "arguments": [list(range(8))], "in_shardings": [{"spec": [["x"]]}]}
    lowered = lambda: ok(s.ask("GET", "/v1/info"))["compile"]["lower"]
    for devices in (grid(4), grid(2), grid(4, first=4)):
        ok(enter(s, at, mesh(s, ["x"], devices)))
        answer = ok(s.ask("POST", at + "/jobs", {**body, "results": {"encoding": "array"}}))
        made = ok(s.ask("GET", "/v1/arrays/" + answer["results"][0]["array"]))
        assert made["mesh"] == mesh(s, ["x"], devices) and made["shard_count"] == len(devices)
    assert lowered() == {"count": 2, "hits": 1}, "two shapes; other devices of the same shape compile nothing"


@own_server(*TWO)
def behaviour_M29_the_environment_lists_axes_and_shapes(s):
    at = session(s)
    ok(enter(s, at, mesh(s, ["x", "y"], grid(4, 2))))
    shown = ok(s.ask("GET", at + "/mesh?as_process=1"))
    assert shown["axes"] == [{"name": "x", "size": 4}, {"name": "y", "size": 2}] and shown["shape"] == [4, 2]
    assert shown["local_shape"] == [2, 2] and shown["text"] == "ResourceEnv(Mesh('x': 4, 'y': 2))"


def behaviour_M30_a_nested_mesh_replaces_the_outer_one(s):
    at = session(s)
    ok(enter(s, at, mesh(s, ["x"], grid(4))))
    assert names(ok(enter(s, at, mesh(s, ["x", "y"], grid(2, 2))))) == ["x", "y"]
    assert names(ok(enter(s, at, mesh(s, ["z"], grid(2))))) == ["z"], "x and y are gone"


@own_server()
def behaviour_M31_a_new_session_is_inside_of_nothing(s):
    at = session(s)
    base = ok(s.ask("GET", at + "/mesh"))
    assert base["empty"] is True and base["depth"] == 0 and base["mesh"] is None and base["axes"] == []
    ok(enter(s, at, mesh(s, ["x"], grid(4))))
    assert s.stop() == 0
    s.start()
    assert names(ok(s.ask("GET", at + "/mesh"))) == ["x"], "the stack survives a restart"


def behaviour_A5_an_abstract_mesh_has_no_devices_to_tell_of(s):
    made = s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 4}]})[2]["id"]
    refused(s.ask("GET", f"/v1/meshes/{made}/local"), 422, "AbstractMesh does not implement local_mesh")
    refused(s.ask("GET", f"/v1/meshes/{made}?as_process=0"), 422, "AbstractMesh does not implement")


def behaviour_A6_an_abstract_mesh_cannot_be_entered(s):
    made = s.ask("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 4}]})[2]["id"]
    refused(enter(s, session(s), made), 409, "AbstractMesh")


main(globals())
