#!/usr/bin/env python3
"""Arrays put together from parts, what processes see of them, and views: rows G18 to G21, G25 to G39, P19.

Fixture F of the rows: mesh x=4, y=2 over devices 0..7, shape (8,2), values 0..15."""
import io
import threading

import numpy as np

from harness import DEVICES, RAW, data, floats, grid, main, mesh, ok, own_server, refused, run, shards, upload

WHOLE = np.arange(16, dtype=np.float32).reshape(8, 2)
TWO = ["--devices", "8", "--processes", "2"]


def value(array):
    array = np.asarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tolist()}


def resolve(s, spec):
    """Index map of F, by device."""
    answer = ok(s.ask("POST", "/v1/shardings:resolve", {"shape": [8, 2], "mesh": fixture_mesh(s), "spec": spec}))
    return {shard["device"]: tuple(slice(*pair) for pair in shard["index"]) for shard in answer["shards"]}


def fixture_mesh(s):
    return mesh(s, ["x", "y"], grid(4, 2))


def assemble(s, spec, parts, **more):
    return s.ask("POST", "/v1/arrays:assemble", {"shape": [8, 2], "mesh": fixture_mesh(s), "spec": spec, "shards": parts, **more})


def by_device(s, spec, dtype=np.float32):
    return [{"device": device, "value": value(WHOLE[index].astype(dtype))} for device, index in resolve(s, spec).items()]


def pending(s, spec, **more):
    body = {"shape": [8, 2], "mesh": fixture_mesh(s), "spec": spec, "dtype": "float32", **more}
    made = ok(s.ask("POST", "/v1/arrays:assemble", body), 201)
    assert made["state"] == "pending"
    return made["id"]


def shard_data(s, array, device):
    return ok(s.ask("GET", f"/v1/arrays/{array}/shards/{device}?format=json"))["data"]


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def behaviour_G18_the_order_of_devices_is_checked(s):
    parts = by_device(s, [["x"], ["y"]])
    assert data(s, ok(assemble(s, [["x"], ["y"]], parts, order="local"), 201)["id"]) == WHOLE.tolist()
    parts[0], parts[1] = parts[1], parts[0]
    refused(assemble(s, [["x"], ["y"]], parts, order="local"), 422, "device order doesn't match")
    assert data(s, ok(assemble(s, [["x"], ["y"]], parts), 201)["id"]) == WHOLE.tolist(), "parts that name their devices may come as they like"


def behaviour_G19_parts_have_the_shape_of_the_shard(s):
    parts = by_device(s, [["x"], ["y"]])
    parts[3]["value"] = value(np.zeros((2, 2), np.float32))
    refused(assemble(s, [["x"], ["y"]], parts), 422, "[2,1], [2,1]", "[2,1], [2,2], [2,1]")


def behaviour_G20_parts_have_one_dtype(s):
    parts = by_device(s, [["x"], ["y"]])
    parts[7]["value"] = value(WHOLE[6:8, 1:2].astype(np.int32))
    refused(assemble(s, [["x"], ["y"]], parts), 422, "float32, float32", "int32")
    assert ok(assemble(s, [["x"], ["y"]], by_device(s, [["x"], ["y"]], np.int32)), 201)["dtype"] == "int32", "that of the parts"


def behaviour_G21_there_are_as_many_parts_as_devices(s):
    parts = [{"value": part["value"]} for part in by_device(s, [["x"], ["y"]])]
    refused(assemble(s, [["x"], ["y"]], parts[:1]), 422, "expected 8 per-device arrays, got 1")
    refused(assemble(s, [["x"], ["y"]], by_device(s, [["x"], ["y"]])[:-1]), 422, "expected 8 per-device arrays, got 7")


@own_server(*TWO)
def behaviour_G25_local_shards(s):
    array = upload(s, range(16), [8, 2], fixture_mesh(s), "x")["id"]
    listed = lambda query: ok(s.ask("GET", f"/v1/arrays/{array}/shards?{query}"))["items"]
    assert [shard["device"] for shard in listed("scope=local")] == list(range(8)), "as all processes at once"
    local = listed("scope=local&as_process=1")
    assert [shard["device"] for shard in local] == [4, 5, 6, 7] and [shard["replica_id"] for shard in local] == [0, 1, 0, 1]
    assert all(shard["data"].endswith(f"/shards/{shard['device']}") for shard in local)


@own_server(*TWO)
def behaviour_G26_global_shards_without_the_data_of_others(s):
    array = upload(s, range(16), [8, 2], fixture_mesh(s), "x")["id"]
    items = ok(s.ask("GET", f"/v1/arrays/{array}/shards?scope=global&as_process=1"))["items"]
    assert len(items) == 8 and [shard["data"] is None for shard in items] == [True] * 4 + [False] * 4


@own_server(*TWO)
def behaviour_G28_a_process_reads_its_own_shards(s):
    array = upload(s, range(16), [8, 2], fixture_mesh(s), "x")["id"]
    refused(s.ask("GET", f"/v1/arrays/{array}/shards/0?as_process=1"), 403, "process 0's")
    assert ok(s.ask("GET", f"/v1/arrays/{array}/shards/4?as_process=1")) == floats([8, 9, 10, 11])


def behaviour_G29_waiting_until_an_array_is_ready(s):
    array = pending(s, [["x", "y"]])
    seen = []
    waiter = threading.Thread(target=lambda: seen.append(ok(s.ask("GET", f"/v1/arrays/{array}?wait=ready"))))
    waiter.start()
    for device in range(8):
        assert ok(s.ask("GET", f"/v1/arrays/{array}"))["state"] == "pending" and not seen
        ok(s.ask("PUT", f"/v1/arrays/{array}/shards/{device}", floats(WHOLE[device]), RAW))
    waiter.join(20)
    assert seen and seen[0]["state"] == "ready" and seen[0]["id"] == array
    assert seen[0] == ok(s.ask("GET", f"/v1/arrays/{array}?wait=ready"))


def behaviour_G30_equality_must_be_written_out(s):
    one, two, other = (upload(s, values, [4])["id"] for values in (range(4), range(4), range(1, 5)))
    compare = lambda to, **more: s.ask("POST", f"/v1/arrays/{one}:compare", {"array": to, **more})
    refused(compare(two), 501, "explicit comparison")
    assert ok(compare(two, mode="bits"))["equal"] is True and ok(compare(other, mode="bits"))["equal"] is False
    assert ok(compare(other, mode="placement"))["equal"] is True
    cut = upload(s, range(4), [4], mesh(s, ["x"], grid(4)), "x")["id"]
    assert ok(compare(cut, mode="placement"))["equal"] is False and ok(compare(cut, mode="bits"))["equal"] is True


def behaviour_G31_an_array_as_text(s):
    array = upload(s, range(16), [8, 2], fixture_mesh(s), "x.y")["id"]
    assert s.ask("GET", f"/v1/arrays/{array}?view=text")[2].strip() == b"float32[8,2]"
    shown = s.ask("GET", f"/v1/arrays/{array}?view=repr")[2].decode()
    assert "Mesh('x': 4, 'y': 2)" in shown and '[["x","y"],[]]' in shown and "shape=(8, 2)" in shown, shown


def asked(s, session):
    return ok(s.ask("GET", f"/v1/sessions/{session}/callbacks"))["items"]


def answer(s, session, question, values):
    return s.ask("POST", f"/v1/sessions/{session}/callbacks/{question['number']}", {"values": [value(one) for one in values]})


def indices(question):
    return [tuple(slice(*pair) for pair in index) for index in question["values"][1]["data"]]


def from_callback(s, session, callback):
    """What a client of from_callback does: answers what it is asked, until nothing is. Gives the questions."""
    log = []
    while questions := asked(s, session):
        for question in questions:
            log.append(question)
            ok(answer(s, session, question, [callback(index) for index in indices(question)]))
    return log


def pulled(s, spec, pull, **more):
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    return session, pending(s, spec, session=session, pull=pull, **more)


def behaviour_G32_the_server_asks_once_for_each_device(s):
    for spec in ([], [["x"]], [["x"], ["y"]]):
        session, array = pulled(s, spec, "each")
        log = from_callback(s, session, lambda index: WHOLE[index])
        assert len(log) == 8 and all(question["array"] == array and question["job"] is None for question in log)
        assert [question["device"] for question in log] == [question["values"][0]["data"][0] for question in log] == list(range(8))
        assert [indices(question) for question in log] == [[index] for index in resolve(s, spec).values()], "replicas are asked for, too"
        assert ok(s.ask("GET", f"/v1/arrays/{array}"))["state"] == "ready" and data(s, array) == WHOLE.tolist()
    whole = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)
    session, array = pulled(s, [["x"], ["y"]], "each", shape=[7, 3])
    assert len(from_callback(s, session, lambda index: whole[index])) == 8 and data(s, array) == whole.tolist(), "uneven parts"


def behaviour_G32_answers_are_checked_and_happen_once(s):
    session, array = pulled(s, [], "each")
    first, second, *_ = asked(s, session)
    refused(answer(s, session, first, [WHOLE[:4]]), 422, "/values/0", "expected tensor<8x2xf32>", "got tensor<4x2xf32>")
    refused(answer(s, session, first, []), 422, "expected 1 values")
    assert ok(answer(s, session, first, [WHOLE]))["state"] == "answered"
    assert ok(answer(s, session, first, [WHOLE]))["state"] == "answered", "the same answer again"
    refused(answer(s, session, first, [WHOLE + 1]), 409, "another reply")
    refused(answer(s, session, second, [WHOLE + 1]), 422, "differs")
    assert second in asked(s, session), "it is still asked for"
    # Parts that are put without being asked for: nothing is left to ask for.
    for device in range(1, 8):
        ok(s.ask("PUT", f"/v1/arrays/{array}/shards/{device}", WHOLE.tobytes(), RAW))
    assert asked(s, session) == [] and data(s, array) == WHOLE.tolist()
    refused(answer(s, session, second, [WHOLE]), 404, "no callback request")


@own_server()
def behaviour_G32_nothing_is_asked_for_an_array_that_is_gone(s):
    session, array = pulled(s, [["x"]], "each")
    kept, other = pulled(s, [["x"]], "batch")
    ok(s.ask("DELETE", f"/v1/arrays/{array}"), 204)
    assert asked(s, session) == [] and len(asked(s, kept)) == 1
    assert s.stop() == 0
    s.start()
    assert asked(s, kept) == [], "a restart forgets pending arrays"
    refused(s.ask("GET", f"/v1/arrays/{other}"), 404)
    body = {"shape": [8, 2], "mesh": fixture_mesh(s), "spec": [], "dtype": "float32"}
    refused(s.ask("POST", "/v1/arrays:assemble", {**body, "pull": "each"}), 422, "/session")
    refused(s.ask("POST", "/v1/arrays:assemble", {**body, "pull": "each", "session": kept, "shards": []}), 422, "/pull")
    ok(s.ask("DELETE", f"/v1/sessions/{kept}"), 204)
    assert s.ask("POST", "/v1/arrays:assemble", {**body, "pull": "each", "session": kept})[0] in (404, 409)


def behaviour_G32_one_request_for_each_device(s):
    """What the callback is asked for is what a pending array lists: an index for each device, replicas too."""
    array = pending(s, [])
    asked = shards(s, array)
    assert [shard["device"] for shard in asked] == list(range(8)) and all(shard["index"] == [[0, 8], [0, 2]] for shard in asked)
    missing = lambda: [shard["device"] for shard in ok(s.ask("GET", f"/v1/arrays/{array}/shards?state=missing"))["items"]]
    for number, shard in enumerate(asked[:-1]):
        assert missing() == list(range(number, 8)), "what is asked for next, also by who comes back later"
        assert ok(s.ask("PUT", shard["data"], floats(range(16)), RAW))["state"] == "pending"
    refused(s.ask("PUT", asked[-1]["data"], floats(range(1, 17)), RAW), 422, "differs")
    assert ok(s.ask("PUT", asked[-1]["data"], floats(range(16)), RAW))["state"] == "ready"
    assert data(s, array) == WHOLE.tolist()
    refused(s.ask("PUT", asked[0]["data"], floats(range(16)), RAW), 409, "complete")


@own_server()
def behaviour_G32_what_is_asked_for_is_filled_from_a_callback(s):
    """A client's loop as from_callback has it, uneven shards too: the server says which index is next until nothing is missing."""
    whole = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)
    body = {"shape": [7, 3], "mesh": fixture_mesh(s), "spec": [["x"], ["y"]], "dtype": "float32"}
    at = "/v1/arrays/" + ok(s.ask("POST", "/v1/arrays:assemble", body), 201)["id"]
    calls = []
    while wanted := ok(s.ask("GET", at + "/shards?state=missing"))["items"]:
        index = tuple(slice(*pair) for pair in wanted[0]["index"])
        calls.append(wanted[0]["device"])
        ok(s.ask("PUT", wanted[0]["data"], whole[index].tobytes(), RAW))
    assert calls == list(range(8)) and data(s, at.rsplit("/", 1)[1]) == whole.tolist()


def behaviour_G33_parts_in_three_encodings(s):
    made = []
    for encode in (lambda a: (npy(a), {"Content-Type": "application/x-npy"}), lambda a: (a.tobytes(), RAW), lambda a: (value(a), None)):
        array = pending(s, [["x"]])
        for device, index in resolve(s, [["x"]]).items():
            body, headers = encode(np.ascontiguousarray(WHOLE[index]))
            ok(s.ask("PUT", f"/v1/arrays/{array}/shards/{device}", body, headers))
        made.append(array)
    for other in made[1:]:
        assert ok(s.ask("POST", f"/v1/arrays/{made[0]}:compare", {"array": other, "mode": "bits"}))["equal"] is True
    assert s.stop() == 0
    s.start()
    assert data(s, made[0]) == WHOLE.tolist(), "complete is durable"


def behaviour_G34_the_server_asks_once_for_all_devices(s):
    session, array = pulled(s, [["x", "y"]], "batch")
    log = from_callback(s, session, lambda index: WHOLE[index])
    assert len(log) == 1 and log[0]["values"][0]["data"] == list(range(8)), "1 pull"
    assert indices(log[0]) == list(resolve(s, [["x", "y"]]).values()), "8 indices"
    assert shard_data(s, array, 0) == [[0, 1]] and shard_data(s, array, 1) == [[2, 3]] and data(s, array) == WHOLE.tolist()


@own_server(*TWO)
def behaviour_G34_a_process_is_asked_for_its_own_devices(s):
    session, array = pulled(s, [["x"]], "batch", as_process=1)
    log = from_callback(s, session, lambda index: WHOLE[index])
    assert [question["values"][0]["data"] for question in log] == [[4, 5, 6, 7]]
    assert ok(s.ask("GET", f"/v1/arrays/{array}"))["pending"]["missing_devices"] == [0, 1, 2, 3], "the others bring theirs"


def behaviour_G34_one_request_with_all_parts(s):
    parts = [{"value": value(WHOLE[index])} for index in resolve(s, [["x", "y"]]).values()]
    array = ok(assemble(s, [["x", "y"]], parts), 201)["id"]
    assert shard_data(s, array, 0) == [[0, 1]] and shard_data(s, array, 1) == [[2, 3]] and data(s, array) == WHOLE.tolist()


def grouped(s, spec):
    """One part for each distinct index, in order of first appearance, with its devices."""
    groups = {}
    for device, index in resolve(s, spec).items():
        groups.setdefault(str(index), (index, []))[1].append(device)
    return [{"devices": devices, "value": value(WHOLE[index])} for index, devices in groups.values()]


def behaviour_G35_one_part_for_each_distinct_index(s):
    parts = grouped(s, [["x"]])
    assert [part["devices"] for part in parts] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    array = ok(assemble(s, [["x"]], parts), 201)["id"]
    assert shard_data(s, array, 0) == shard_data(s, array, 1) == [[0, 1], [2, 3]] and data(s, array) == WHOLE.tolist()


def behaviour_G35_one_request_for_each_distinct_index(s):
    array = pending(s, [["y"]])
    for expected in ([0, 1, 2, 3, 4, 5, 6, 7], [1, 3, 5, 7], []):
        wanted = ok(s.ask("GET", f"/v1/arrays/{array}/shards?state=missing"))["items"]
        assert [shard["device"] for shard in wanted] == expected
        if wanted:
            index = tuple(slice(*pair) for pair in wanted[0]["index"])
            ok(s.ask("PUT", wanted[0]["data"] + "?replicas=all", WHOLE[index].tobytes(), RAW))
    assert data(s, array) == WHOLE.tolist()
    refused(s.ask("PUT", f"/v1/arrays/{array}/shards/0?replicas=some", WHOLE.tobytes(), RAW), 422, "replicas")


def behaviour_G36_groups_out_of_order_need_their_keys(s):
    parts = grouped(s, [["y"]])
    assert [part["devices"] for part in parts] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    refused(assemble(s, [["y"]], parts, order="local"), 422, "device order doesn't match")
    assert data(s, ok(assemble(s, [["y"]], parts, order="keyed"), 201)["id"]) == WHOLE.tolist()


@own_server()
def behaviour_G39_index_maps_are_kept(s):
    layouts = lambda: ok(s.ask("GET", "/v1/info"))["layouts"]
    for spec in ("x", "x,", "x"):
        upload(s, range(16), [8, 2], fixture_mesh(s), spec)
    assert layouts() == {"count": 1, "hits": 2}, layouts()
    upload(s, range(16), [8, 2], fixture_mesh(s), "y")
    assert layouts() == {"count": 2, "hits": 2}


def behaviour_P19_a_moved_array_is_used_once(s):
    for durability in ("durable", "memory"):
        key = upload(s, [1, 2], [2], dtype="uint32", durability=durability)["id"]
        moved = ok(s.ask("POST", f"/v1/arrays/{key}:move"), 201)["id"]
        assert moved != key and data(s, moved) == [1, 2]
        refused(s.ask("GET", f"/v1/arrays/{key}/data"), 410, "deleted or donated")
        refused(s.ask("POST", f"/v1/arrays/{key}:move"), 409, "deleted or donated")


main(globals())
