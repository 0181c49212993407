#!/usr/bin/env python3
"""What an accepted job reads outlives its deletion: the program and the files of its form, over a kill -9 too; arrays are not deleted before it
is over."""
import json
import signal
import struct
import sys

from server import SPIN, ok, refused, run_stories, until

RAW = {"Content-Type": "application/octet-stream"}
ASYNC = {"Prefer": "respond-async"}
# Waits for its client, then adds what it gets. The module's name makes each a program of its own.
ADD = """module @%s {
func.func @main(%%a: tensor<4xf32>) -> tensor<4xf32> {
  %%t = stablehlo.create_token : !stablehlo.token
  %%0:2 = "stablehlo.infeed"(%%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %%1 = stablehlo.add %%a, %%0#0 : tensor<4xf32>
  return %%1 : tensor<4xf32>
} }"""
DOUBLE = """module @%s { func.func @main(%%a: tensor<4xf32>) -> tensor<4xf32> {
  %%0 = stablehlo.add %%a, %%a : tensor<4xf32>
  return %%0 : tensor<4xf32>
} }"""


def session(s):
    return ok(s.ask("POST", "/v1/sessions"), 201)["id"]


def program(s, text, **more):
    return ok(s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": text, **more}), 201)["id"]


def array(s, *values):
    return ok(s.ask("POST", "/v1/arrays?dtype=float32&shape=4", struct.pack("<4f", *values), RAW), 201)["id"]


def start(s, at, of, arguments, **more):
    return ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": of, "arguments": arguments, **more}, ASYNC), 202)["id"]


def feed(s, at, values):
    ok(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [{"dtype": "float32", "shape": [4], "data": values}]}), 201)


def job(s, name):
    return ok(s.ask("GET", f"/v1/jobs/{name}?wait=20"))


def waits(s, name):
    until(lambda: "waits_for" in ok(s.ask("GET", f"/v1/jobs/{name}")).get("progress", {}), f"job {name} does not wait for its client")


def restart(s, how):
    s.stop(how)
    s.start()


def a_form_has_its_files_after_a_kill(s):
    at = session(s)
    document = json.dumps({"program": {"text": ADD % "with_a_file"}, "arguments": [{"part": "x"}]})
    form = "\r\n".join(["--b", 'Content-Disposition: form-data; name="request"', "Content-Type: application/json", "", document, "--b",
                        'Content-Disposition: form-data; name="x"', "Content-Type: application/octet-stream", "", ""]).encode()
    form += struct.pack("<4f", 1, 2, 3, 4) + b"\r\n--b--\r\n"
    answer = s.ask("POST", f"/v1/sessions/{at}/jobs", form, {**ASYNC, "Content-Type": "multipart/form-data; boundary=b"})
    name = ok(answer, 202)["id"]
    waits(s, name)
    restart(s, signal.SIGKILL)
    feed(s, at, [10, 20, 30, 40])
    done = job(s, name)
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [11, 22, 33, 44], done


def a_program_deleted_while_its_job_waits_still_runs(s):
    for number, how in enumerate((None, signal.SIGTERM, signal.SIGKILL)):
        at, made = session(s), program(s, ADD % f"waits{number}")
        name = start(s, at, {"id": made}, [[1, 2, 3, 4]])
        waits(s, name)
        ok(s.ask("DELETE", f"/v1/programs/{made}"), 204)
        refused(s.ask("GET", f"/v1/programs/{made}"), 404, "not_found")
        refused(s.ask("POST", "/v1/run", {"program": {"id": made}, "arguments": [[1, 2, 3, 4]]}), 404, "not_found")
        if how:
            restart(s, how)
            refused(s.ask("GET", f"/v1/programs/{made}"), 404, "not_found")
            restart(s, how)  # and once more: what a restart keeps, the next one keeps too
        feed(s, at, [10, 20, 30, 40])
        done = job(s, name)
        assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [11, 22, 33, 44], done


def a_program_deleted_while_its_job_is_in_the_queue_still_runs(s):
    spinning = [start(s, session(s), {"text": SPIN}, [1_000_000_000]) for _ in range(8)]
    made = program(s, DOUBLE % "queued", in_tree=["*"], out_tree={"y": "*"})
    name = ok(s.ask("POST", "/v1/run", {"program": {"id": made}, "arguments": [[1, 2, 3, 4]]}, ASYNC), 202)["id"]
    assert ok(s.ask("GET", f"/v1/jobs/{name}"))["state"] == "queued"
    ok(s.ask("DELETE", f"/v1/programs/{made}"), 204)
    restart(s, signal.SIGKILL)
    for other in spinning:
        ok(s.ask("DELETE", f"/v1/jobs/{other}"), 202)
    done = job(s, name)
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [2, 4, 6, 8], done
    assert "result_tree" in done["answer"], "the trees are the program's, too"


def a_program_that_a_mesh_of_the_session_runs_on_is_kept(s):
    at, made = session(s), program(s, ADD % "inside")
    mesh = ok(s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1]}), 201)["id"]
    ok(s.ask("POST", f"/v1/sessions/{at}/mesh", {"mesh": mesh}), s.ask("GET", f"/v1/sessions/{at}/mesh")[0])
    name = start(s, at, {"id": made}, [[1, 2, 3, 4]])
    waits(s, name)
    ok(s.ask("DELETE", f"/v1/programs/{made}"), 204)
    restart(s, signal.SIGKILL)
    feed(s, at, [1, 1, 1, 1])
    assert job(s, name)["state"] == "done", job(s, name)


def an_array_that_an_accepted_job_reads_is_not_deleted(s):
    at, made = session(s), array(s, 1, 2, 3, 4)
    name = start(s, at, {"text": ADD % "arrays"}, [{"array": made}])
    waits(s, name)
    refused(s.ask("DELETE", f"/v1/arrays/{made}"), 409, "array_in_use", "still to be read by 1 accepted jobs")
    restart(s, signal.SIGKILL)
    refused(s.ask("POST", f"/v1/arrays/{made}:delete"), 409, "array_in_use")
    feed(s, at, [1, 1, 1, 1])
    assert job(s, name)["answer"]["results"][0]["data"] == [2, 3, 4, 5]
    ok(s.ask("DELETE", f"/v1/arrays/{made}"), 204)


def an_array_that_is_free_of_a_cancelled_job_may_go(s):
    at, made = session(s), array(s, 1, 2, 3, 4)
    name = start(s, at, {"text": ADD % "cancelled"}, [{"array": made}])
    waits(s, name)
    ok(s.ask("DELETE", f"/v1/jobs/{name}"), 202)
    assert job(s, name)["state"] == "cancelled"
    ok(s.ask("DELETE", f"/v1/arrays/{made}"), 204)


def an_array_that_a_request_feeds_is_kept_for_a_second_try(s):
    """Two entries: one comes with the request, for the other the job waits."""
    text = (ADD % "fed").replace("return %1", '%2:2 = "stablehlo.infeed"(%0#1) <{infeed_config = ""}> : (!stablehlo.token) -> '
                                 "(tensor<4xf32>, !stablehlo.token)\n  %3 = stablehlo.add %1, %2#0 : tensor<4xf32>\n  return %3")
    at, made = session(s), array(s, 5, 6, 7, 8)
    name = start(s, at, {"text": text}, [[0, 0, 0, 0]], infeed=[{"values": [{"array": made}]}])
    waits(s, name)
    refused(s.ask("DELETE", f"/v1/arrays/{made}"), 409, "array_in_use")
    restart(s, signal.SIGKILL)
    feed(s, at, [1, 1, 1, 1])
    done = job(s, name)
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [6, 7, 8, 9], done
    ok(s.ask("DELETE", f"/v1/arrays/{made}"), 204)


STORIES = [value for value in list(globals().values()) if getattr(value, "__name__", "").startswith(("a_program", "an_array", "a_form"))]
sys.exit(run_stories(STORIES))
