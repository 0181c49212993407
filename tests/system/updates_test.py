#!/usr/bin/env python3
"""Arrays that jobs update in place: versions, the order of a session, nobody's update lost, either version whole."""
import signal
import struct
import sys
import threading

from server import COUNT, ok, refused_with as refused, run_stories

RAW = {"Content-Type": "application/octet-stream"}
ASYNC = {"Prefer": "respond-async"}
STEP = """func.func @main(%a: tensor<8x2xf32>, %b: tensor<f32>) -> (tensor<8x2xf32>, tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
  %1 = stablehlo.add %a, %0 : tensor<8x2xf32>
  return %1, %b : tensor<8x2xf32>, tensor<f32>
}"""
# Spins for a while, then adds.
SLOW = "func.func @main(%a: tensor<8x2xf32>, %b: tensor<f32>, %n: tensor<i32>) -> tensor<8x2xf32> {\n" + COUNT + """\
  %z = stablehlo.subtract %0, %n : tensor<i32>
  %f = stablehlo.convert %z : (tensor<i32>) -> tensor<f32>
  %k = stablehlo.add %b, %f : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
  %2 = stablehlo.multiply %a, %1 : tensor<8x2xf32>
  return %2 : tensor<8x2xf32>
}"""
TIMES = STEP.replace("stablehlo.add", "stablehlo.multiply")
READ = "func.func @main(%a: tensor<8x2xf32>) -> tensor<8x2xf32> { %0 = stablehlo.abs %a : tensor<8x2xf32> return %0 : tensor<8x2xf32> }"
UPDATE = [{"argument": 0, "result": 0}]


def array(s, value=0.0, **query):
    path = "/v1/arrays?dtype=float32&shape=8,2" + "".join(f"&{name}={word}" for name, word in query.items())
    return ok(s.ask("POST", path, struct.pack("<16f", *[value] * 16), RAW), 201)["id"]


def data(s, at):
    status, headers, body = s.ask("GET", f"/v1/arrays/{at}/data")
    assert status == 200, body
    values = set(struct.unpack("<16f", body))
    assert len(values) == 1, "half of one version and half of another"
    return values.pop(), headers["ETag"]


def run(s, text, arguments, **more):
    return s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": arguments, **more})


def session(s):
    return ok(s.ask("POST", "/v1/sessions"), 201)["id"]


def job(s, at, text, arguments, **more):
    return ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": text}, "arguments": arguments, **more}, ASYNC), 202)["id"]


def an_update_is_the_next_version(s):
    mesh = ok(s.ask("POST", "/v1/meshes", {"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3]]}), 201)["id"]
    for made in (array(s), array(s, durability="memory"), array(s, mesh=mesh, spec="x,y"), array(s, mesh=mesh, spec=",x.y")):
        value, first = data(s, made)
        answer = ok(run(s, STEP, [{"array": made}, 1.5], update=UPDATE))
        assert answer["results"][0] == {"dtype": "float32", "shape": [8, 2], "array": made, "version": 2}, answer["results"]
        assert answer["results"][1]["data"] == 1.5
        value, second = data(s, made)
        assert value == 1.5 and second != first
        document = ok(s.ask("GET", f"/v1/arrays/{made}"))
        assert document["version"] == 2 and document["state"] == "ready"
        assert s.ask("GET", f"/v1/arrays/{made}/data", None, {"If-None-Match": second})[0] == 304
        # results laid out otherwise than the array are resharded to its layout
        ok(run(s, STEP, [{"array": made}, 1.0], update=UPDATE, results={"encoding": "none"}))
        assert data(s, made)[0] == 2.5 and ok(s.ask("GET", f"/v1/arrays/{made}"))["version"] == 3
    loose = array(s)
    ok(run(s, STEP, [{"array": loose}, 1.0], update=UPDATE, mesh={"axis_names": ["x"], "devices": [0, 1, 2, 3]}, in_shardings=[{"spec": [["x"], []]}, None],
           out_shardings=[{"spec": [["x"], []]}, None]))
    assert data(s, loose)[0] == 1.0 and len(ok(s.ask("GET", f"/v1/arrays/{loose}/shards"))["items"]) == 1


def updates_name_what_is_wrong(s):
    made = array(s)
    own = [{"array": made}, 1.0]
    refused(run(s, STEP, [[[0, 0]] * 8, 1.0], update=UPDATE), 422, "/update/0/argument", "stored array")
    refused(run(s, STEP.replace("8x2", "4x2"), [{"array": made, "slice": "0:4"}, 1.0], update=UPDATE), 422, "/update/0/argument")
    refused(run(s, STEP, own, update=[{"argument": 7, "result": 0}]), 422, "/update/0/argument")
    refused(run(s, STEP, own, update=[{"argument": 0, "result": 2}]), 422, "/update/0/result", "2 results")
    refused(run(s, STEP, own, update=[{"argument": 0, "result": 1}]), 422, "/update/0/result", "8x2xf32")
    refused(run(s, STEP, own, update=UPDATE * 2), 422, "updated twice")
    refused(run(s, STEP, own, update=[{"argument": 0}]), 422, "/update/0/result")
    refused(run(s, STEP, own, update=UPDATE, donate=[0]), 422, "donated and updated")
    refused(run(s, STEP, own, update=[{**UPDATE[0], "version": 2}]), 412, "has version 1")
    refused(run(s, STEP, own, update=[1]), 422, "/update/0")
    assert ok(s.ask("GET", f"/v1/arrays/{made}"))["version"] == 1 and data(s, made)[0] == 0.0
    ok(run(s, STEP, own, update=[{**UPDATE[0], "version": 1}]))
    assert data(s, made)[0] == 1.0


def jobs_of_a_session_update_in_its_order(s):
    """Slow and fast jobs on different devices: each reads what the one before it left."""
    made, at = array(s, 1.0, durability="memory"), session(s)
    expected, reads = 1.0, []
    for n in range(4):
        job(s, at, SLOW, [{"array": made}, 2.0, 50000 if n % 2 == 0 else 1], update=UPDATE, mesh={"axis_names": ["x"], "devices": [n]}, results={"encoding": "none"},
            reshard=True)
        job(s, at, STEP, [{"array": made}, 3.0], update=UPDATE, mesh={"axis_names": ["x"], "devices": [n + 1]}, results={"encoding": "none"}, reshard=True)
        expected = 2 * expected + 3
        reads.append((job(s, at, READ, [{"array": made}]), expected))
    for one, value in reads:
        done = ok(s.ask("GET", f"/v1/jobs/{one}?wait=60"))
        assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [[value] * 2] * 8, (value, done)
    assert data(s, made)[0] == expected and ok(s.ask("GET", f"/v1/arrays/{made}"))["version"] == 9


def no_update_is_lost(s):
    """Many clients without a session add one each: what was answered 200 is in the sum, the others were told."""
    made, done, lost = array(s), [], []

    def add():
        for _ in range(10):
            status, _, document = run(s, STEP, [{"array": made}, 1.0], update=UPDATE, results={"encoding": "none"})
            (done if status == 200 else lost).append((status, document))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        data(s, made)  # either version, whole
    for thread in threads:
        thread.join()
    assert {status for status, _ in lost} <= {409}, lost
    assert data(s, made)[0] == len(done) and len(done) + len(lost) == 40
    versions = [document["results"][0]["version"] for _, document in done]
    assert sorted(versions) == list(range(2, len(done) + 2)), "each version is made once"


def failures_leave_the_version_before(s):
    made, at = array(s, 4.0), session(s)
    spinning = job(s, at, SLOW, [{"array": made}, 2.0, 2000000000], update=UPDATE)
    behind = job(s, at, STEP, [{"array": made}, 1.0], update=UPDATE)
    ok(s.ask("DELETE", f"/v1/jobs/{spinning}"), 202)
    assert ok(s.ask("GET", f"/v1/jobs/{behind}?wait=60"))["state"] == "done"
    seen = (data(s, made)[0], ok(s.ask("GET", f"/v1/arrays/{made}"))["version"])
    assert seen == (5.0, 2), (seen, ok(s.ask("GET", f"/v1/jobs/{spinning}?wait=10")))
    ok(s.ask("DELETE", f"/v1/arrays/{made}"), 204)
    refused(run(s, STEP, [{"array": made}, 1.0], update=UPDATE), 404)


def versions_outlive_the_server(s):
    made = array(s, 1.0)
    for n in range(3):
        ok(run(s, TIMES, [{"array": made}, 2.0], update=UPDATE))
    before = data(s, made)
    at = session(s)
    running = job(s, at, SLOW, [{"array": made}, 2.0, 500000], update=UPDATE)
    s.stop(signal.SIGKILL)
    s.start()
    for _ in range(5):  # minutes, which a sanitizer may need
        done = ok(s.ask("GET", f"/v1/jobs/{running}?wait=60"))
        if done["state"] == "done":
            break
    assert done["state"] == "done", done
    assert before[0] == 8.0 and data(s, made)[0] == 16.0, "once, however often it ran"
    assert ok(s.ask("GET", f"/v1/arrays/{made}"))["version"] == 5


STORIES = [an_update_is_the_next_version, updates_name_what_is_wrong, jobs_of_a_session_update_in_its_order, no_update_is_lost,
           failures_leave_the_version_before, versions_outlive_the_server]


sys.exit(run_stories(STORIES))
