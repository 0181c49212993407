#!/usr/bin/env python3
"""Arrays that wait for their parts: pending_test.py BINARY. They cost memory as parts come, are listed, bounded, and expire."""
import http.client
import struct
import sys

from server import memory_of, ok, refused, run_stories, until

RAW = {"Content-Type": "application/octet-stream"}
MIB = 1 << 20


def mesh(s):
    answer = s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": list(range(8))})
    return answer[2]["id"]


def assemble(s, shape, **more):
    return s.ask("POST", "/v1/arrays:assemble", {"shape": shape, "mesh": mesh(s), "spec": [["x"]], "dtype": "float32", **more})


def pending(s, shape=(16,), **more):
    return ok(assemble(s, list(shape), **more), 201)


def put(s, at, device, values):
    return s.ask("PUT", f"/v1/arrays/{at}/shards/{device}", struct.pack(f"<{len(values)}f", *values), RAW)


def listed(s, **query):
    items, after = [], ""
    while True:
        words = "&".join(f"{name}={word}" for name, word in {"limit": 7, **query, **({"cursor": after} if after else {})}.items())
        page = ok(s.ask("GET", "/v1/arrays?" + words))
        items += page["items"]
        if page["next"] is None:
            return items
        after = page["next"]


def four_gibibytes_that_never_come_cost_nothing(s):
    """Even shards, uneven ones (whose buffers are padded), and parts of which only the head comes."""
    pending(s)
    base = memory_of(s, "VmRSS")
    made = [pending(s, [(1 << 30) - number % 2 * 3], name="huge", durability=("durable", "memory")[number % 2])["id"] for number in range(64)]
    assert memory_of(s, "VmRSS") - base < 64 * MIB, f"{(memory_of(s, 'VmRSS') - base) / MIB} MiB more"
    waiting = []
    for number in range(0, 64, 8):
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
        connection.putrequest("PUT", f"/v1/arrays/{made[number]}/shards/0")
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Content-Length", str(4 * ((1 << 30) // 8)))
        connection.endheaders()
        waiting.append(connection)
    ok(s.ask("GET", "/readyz"))
    assert memory_of(s, "VmRSS") - base < 64 * MIB, f"{(memory_of(s, 'VmRSS') - base) / MIB} MiB more with heads of parts"
    for connection in waiting:
        connection.close()
    shown = listed(s, name="huge")
    assert sorted(item["id"] for item in shown) == sorted(made) and all(item["state"] == "pending" for item in shown)
    assert all(item["pending"]["bytes"] == 0 and item["pending"]["missing"] == 8 for item in shown)
    for one in made:
        until(lambda one=one: s.ask("DELETE", f"/v1/arrays/{one}")[0] in (204, 404), "a part on its way keeps the array")
    assert not listed(s, name="huge")
    assert memory_of(s, "VmRSS") - base < 64 * MIB


def a_pending_array_says_what_is_missing(s):
    made = pending(s)
    assert made["state"] == "pending" and made["pending"] == {
        "parts": 8, "missing": 8, "missing_devices": list(range(8)), "bytes": 0, "expires": made["pending"]["expires"]}, made
    at = made["id"]
    for device in range(8):
        shown = ok(s.ask("GET", f"/v1/arrays/{at}"))
        assert shown["pending"]["missing_devices"] == list(range(device, 8)) and shown["pending"]["bytes"] == 8 * device, shown
        assert [item for item in listed(s) if item["id"] == at] == [shown]
        shown = ok(put(s, at, device, [2 * device, 2 * device + 1]))
    assert shown["state"] == "ready" and "pending" not in shown, shown
    assert [item["id"] for item in listed(s)].count(at) == 1
    assert ok(s.ask("GET", f"/v1/arrays/{at}/data")) == struct.pack("<16f", *range(16))
    refused(put(s, at, 0, [0, 1]), 409, "conflict", "complete")
    ok(s.ask("DELETE", f"/v1/arrays/{at}"), 204)


def an_assembly_that_fails_leaves_nothing(s):
    part = {"device": 0, "value": {"dtype": "float32", "shape": [2], "data": [1, 2]}}
    other = {"device": 0, "value": {"dtype": "float32", "shape": [2], "data": [1, 3]}}
    before = len(listed(s))
    refused(assemble(s, [2], spec=[], shards=[dict(part, device=device) for device in range(7)] + [dict(other, device=7)]), 422, "invalid_array", "differs")
    assert len(listed(s)) == before


def a_principal_has_so_many_pending(s):
    made = []
    while len(made) <= 256:
        got = assemble(s, [16])
        if got[0] != 201:
            break
        made.append(got[2]["id"])
    refused(got, 429, "limit_reached", "256")
    assert got[1]["Retry-After"]
    ok(s.ask("DELETE", f"/v1/arrays/{made.pop()}"), 204)
    made.append(pending(s)["id"])
    for one in made:
        ok(s.ask("DELETE", f"/v1/arrays/{one}"), 204)


def without_parts_it_expires(s):
    """This server's arrays expire after two seconds; a part that comes slowly keeps its array. It is a large one: small ones are read
    before anybody looks whom they are for."""
    half = 4 * MIB
    request, key = {"shape": [16], "mesh": mesh(s), "spec": [["x"]], "dtype": "float32"}, {"Idempotency-Key": "k"}
    keyed = ok(s.ask("POST", "/v1/arrays:assemble", request, key), 201)["id"]
    assert ok(s.ask("POST", "/v1/arrays:assemble", request, key), 201)["id"] == keyed
    forgotten, slow = pending(s)["id"], pending(s, [8 * 2 * half // 4])["id"]
    connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    connection.putrequest("PUT", f"/v1/arrays/{slow}/shards/0")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", str(2 * half))
    connection.endheaders()
    connection.send(bytes(half))
    until(lambda: s.ask("GET", f"/v1/arrays/{forgotten}")[0] == 404, "the array does not expire")
    refused(s.ask("GET", f"/v1/arrays/{forgotten}"), 404, "not_found", "was pending and got no part for 2 seconds")
    refused(put(s, forgotten, 0, [0, 1]), 404, "not_found", "got no part")
    assert forgotten not in [item["id"] for item in listed(s)]
    until(lambda: s.ask("GET", f"/v1/arrays/{keyed}")[0] == 404, "the array does not expire")
    refused(s.ask("POST", "/v1/arrays:assemble", request, key), 404, "not_found", keyed, "got no part", "use a new key")
    connection.send(bytes(half))
    answer = connection.getresponse()
    assert answer.status == 200, f"a part on its way keeps its array: {answer.status} {answer.read()}"
    connection.close()
    refused(s.ask("GET", f"/v1/arrays/{slow}?wait=ready"), 404, "not_found", "got no part")
    s.stop()
    s.start()
    refused(s.ask("POST", "/v1/arrays:assemble", request, key), 404, "not_found", keyed, "or the server ended", "use a new key")


failed = run_stories([four_gibibytes_that_never_come_cost_nothing, a_pending_array_says_what_is_missing, an_assembly_that_fails_leaves_nothing,
                      a_principal_has_so_many_pending])
sys.exit(run_stories([without_parts_it_expires], options=("--pending-timeout", "2")) or failed)
