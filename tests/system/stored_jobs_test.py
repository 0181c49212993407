#!/usr/bin/env python3
"""Jobs that wait over a kill -9 give what the same requests give at once, from the stored form of their requests and from rows of a server
that kept the API's bodies; large values of requests are blobs while their jobs wait, count in the quota, and leave with them."""
import base64
import json
import os
import pathlib
import signal
import sqlite3
import struct
import sys

from server import Meshd, ok, refused, run_stories, until

RAW = {"Content-Type": "application/octet-stream"}
ASYNC = {"Prefer": "respond-async"}
LARGE = 1 << 20  # values of a request beyond what a row keeps

ADD = "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.add %a, %b : tensor<4xf32> return %0 : tensor<4xf32> }"
PAIR = """func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<2xf32>, tensor<f32>) {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  %1 = stablehlo.negate %b : tensor<f32>
  return %0, %1 : tensor<2xf32>, tensor<f32>
}"""
SUM = """func.func @main(%%a: tensor<%dxui8>) -> tensor<ui8> {
  %%c = stablehlo.constant dense<0> : tensor<ui8>
  %%0 = stablehlo.reduce(%%a init: %%c) applies stablehlo.add across dimensions = [0] : (tensor<%dxui8>, tensor<ui8>) -> tensor<ui8>
  return %%0 : tensor<ui8>
}"""
ASKS = """func.func @main(%t: !stablehlo.token {jax.token = true}, %x: tensor<f32>) -> (!stablehlo.token {jax.token = true}, tensor<f32>) {
  %0:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<f32>) -> (!stablehlo.token, tensor<f32>)
  return %0#0, %0#1 : !stablehlo.token, tensor<f32>
}"""
INFEED = """func.func @main() -> tensor<4xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %1:2 = "stablehlo.infeed"(%0#1) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %2 = stablehlo.subtract %0#0, %1#0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}"""
DYNAMIC = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.add %a, %a : tensor<?xf32> return %0 : tensor<?xf32> }"
NUMPY = """def f(x, n, *, scale=1.0, mode="double"):
  y = x * n * scale
  return {"y": y if mode == "double" else -y, "parts": (y[:1], y[1:])}"""
NUMPY_LOG = """def f(x):
  log("seen {}", x)
  return x + 1"""
# The exponential of a large number is infinite, and no other run has it in memory.
PASSING = """def f(x):
  return 1 / jnp.exp(x) + 1"""


def array(s, values, more=""):
    return ok(s.ask("POST", f"/v1/arrays?dtype=float32&shape={len(values)}{more}", struct.pack(f"<{len(values)}f", *values), RAW), 201)["id"]


# Bodies by name: between them they have every field that a job keeps.
def bodies(s):
    x, y = array(s, [1, 2, 3, 4]), array(s, [10, 20, 30, 40])
    mesh = {"axis_names": ["x"], "devices": [1, 0]}
    stored_mesh = s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1]})[2]["id"]
    named = s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": PAIR, "in_tree": {"a": "*", "b": "*"}, "out_tree": ["*", {"r": "*"}]})[2]["id"]
    logs = {"0": {"effect": "callback", "name": "ask", "answers": [[{"dtype": "float32", "shape": [], "data": 7}]]}}
    out = {
        "values": {"program": {"text": ADD}, "arguments": [[1, 2, 3, 4], {"dtype": "float32", "shape": [4], "base64": base64.b64encode(struct.pack("<4f", 1, 0, -1, float("inf"))).decode()}]},
        "arrays": {"program": {"text": ADD}, "arguments": [{"array": x}, {"array": y}]},
        "slices": {"program": {"text": ADD.replace("4x", "2x")}, "arguments": [{"array": x, "slice": "0:2"}, {"array": y, "slice": "1::2"}]},
        "placed": {"program": {"text": ADD}, "arguments": [{"array": x}, [1, 1, 1, 1]], "mesh": mesh, "in_shardings": [{"spec": [["x"]]}, None], "out_shardings": [{"spec": [[]]}]},
        "stored mesh": {"program": {"text": ADD}, "arguments": [[1, 2, 3, 4], [1, 1, 1, 1]], "mesh": stored_mesh, "in_shardings": [{"spec": [["x"]]}, {"spec": [["x"]]}]},
        "least loaded": {"program": {"text": ADD}, "arguments": [{"array": x}, {"array": y}], "devices": "least_loaded"},
        "tree": {"program": {"id": named}, "arguments": {"a": [1, 2], "b": 3}, "results": {"encoding": "base64"}},
        "static": {"program": {"text": ADD}, "arguments": [{"array": x}], "static": {"1": [5, 6, 7, 8]}},
        "dynamic": {"program": {"text": DYNAMIC}, "arguments": [{"dtype": "float32", "shape": [3], "data": [1, 2, 3]}]},
        "numpy": {"program": {"format": "numpy", "text": NUMPY}, "arguments": [{"array": x}, 2], "keywords": {"scale": 0.5}, "static": {"mode": "minus"}},
        "numpy log": {"program": {"format": "numpy", "text": NUMPY_LOG}, "arguments": [[1, 2]]},
        "answers": {"program": {"text": ASKS}, "arguments": [1.5], "callbacks": logs},
        "infeed": {"program": {"text": INFEED}, "arguments": [], "infeed": [{"values": [{"array": y}]}, {"values": [{"dtype": "float32", "shape": [4], "data": [1, 1, 1, 1]}]}]},
        "infeed slice": {"program": {"text": INFEED}, "arguments": [], "infeed": [{"values": [{"dtype": "float32", "shape": [4], "data": [9, 9, 9, 9]}]}, {"values": [{"array": y, "slice": "0:4"}]}]},
        "parts": {"program": {"text": ADD}, "arguments": [{"array": x}, {"array": y}], "in_shardings": [{"parts": [2]}, None]},
        "none": {"program": {"text": PAIR}, "arguments": [[1, 2], 3], "results": {"encoding": "none"}},
        "profile": {"program": {"text": PAIR}, "arguments": [[1, 2], 3], "debug_nans": True, "debug_infs": True, "deadline": 600},
        "infinity": {"program": {"format": "numpy", "text": PASSING}, "arguments": [1000.0], "debug_infs": True},
        "large": {"program": {"text": SUM % (LARGE, LARGE)}, "arguments": [{"dtype": "uint8", "shape": [LARGE], "base64": base64.b64encode(b"\x03" * (LARGE - 1) + b"\x05").decode()}]},
        "large text": {"program": {"text": ADD + "\n//" + "-" * LARGE}, "arguments": [{"array": x}, [4, 3, 2, 1]]},
    }
    return out


def told(answer):
    """What must be the same of two answers."""
    return {"results": [{k: v for k, v in r.items() if k != "array"} for r in answer["results"]] if isinstance(answer["results"], list) else answer["results"],
            "effects": [{k: v for k, v in e.items() if k not in ("job", "sequence", "time")} for e in answer["effects"]],
            "first_nonfinite": answer.get("first_nonfinite")}


def halted(s):
    """A session that holds its jobs."""
    at = ok(s.ask("POST", "/v1/sessions", {"on_error": "halt"}), 201)["id"]
    failed = s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": INFEED}, "arguments": [], "infeed": [], "deadline": 0.05})
    assert failed[0] >= 400, failed
    assert ok(s.ask("GET", f"/v1/sessions/{at}"))["state"] == "halted"
    return at


def requests_kept(s):
    return list(pathlib.Path(s.folder, "data", "blobs").rglob("request_*"))


def start_all(s, at, wanted):
    return {name: ok(s.ask("POST", f"/v1/sessions/{at}/jobs", body, ASYNC), 202)["id"] for name, body in wanted.items()}


def check_all(s, at, names, expected):
    ok(s.ask("POST", f"/v1/sessions/{at}:resume"))
    for name, job in names.items():
        done = ok(s.ask("GET", f"/v1/jobs/{job}?wait=30"))
        assert done["state"] == "done", f"{name}: {done}"
        assert told(done["answer"]) == expected[name], f"{name}: {told(done['answer'])} is not {expected[name]}"


def database(s):
    return sqlite3.connect(pathlib.Path(s.folder, "data", "meshd.db"))


def a_waiting_job_gives_what_its_request_gives_at_once(s):
    wanted = bodies(s)
    expected = {}
    for name, body in wanted.items():
        at = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
        expected[name] = told(ok(s.ask("POST", f"/v1/sessions/{at}/jobs", body)))
    for kills in (1, 2):
        at = halted(s)
        names = start_all(s, at, wanted)
        with database(s) as rows:
            large = [row[0] for row in rows.execute("SELECT id FROM jobs WHERE blob IS NOT NULL ORDER BY number")]
        assert large == [names["large"], names["large text"]], f"these have blobs: {large}"
        for _ in range(kills):
            s.stop(signal.SIGKILL)
            s.start()
        assert len(requests_kept(s)) == 2, f"those of jobs that were over left with the start: {requests_kept(s)}"
        check_all(s, at, names, expected)
        until(lambda: not requests_kept(s), "blobs of jobs that are over leave", 90)
        with database(s) as rows:
            left = rows.execute("SELECT count(*) FROM jobs WHERE length(request) > 0 OR blob IS NOT NULL").fetchone()
        assert left == (0,), left


def a_job_of_an_older_server_runs(s):
    wanted = {name: body for name, body in bodies(s).items() if name not in ("stored mesh", "large", "large text")}
    expected = {}
    for name, body in wanted.items():
        at = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
        expected[name] = told(ok(s.ask("POST", f"/v1/sessions/{at}/jobs", body)))
    at = halted(s)
    names = start_all(s, at, wanted)
    wrapped = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ADD}, "arguments": [[0, 0, 0, 0], [0, 0, 0, 0]]}, ASYNC), 202)["id"]
    gone = s.ask("POST", "/v1/meshes", {"axis_names": ["y"], "devices": [1, 0]})[2]["id"]
    ok(s.ask("DELETE", f"/v1/meshes/{gone}"), 204)
    s.stop(signal.SIGKILL)
    # As schema 15 had it: the body as it came, or the body with what it named and the files of its form.
    mesh = {"axes": [{"name": "y", "size": 2}], "device_ids": [1, 0]}
    with database(s) as rows:
        for name, job in names.items():
            rows.execute("UPDATE jobs SET request = ?, request_version = 0, blob = NULL WHERE id = ?", (json.dumps(wanted[name]).encode(), job))
        body = {"program": {"text": ADD}, "arguments": [[1, 2, 3, 4], {"part": "b"}], "mesh": gone, "in_shardings": [{"spec": [["y"]]}, None]}
        kept = {"session_mesh": mesh, "meshes": [mesh], "files": [{"part": "b", "filename": "", "media_type": "application/octet-stream", "base64": base64.b64encode(struct.pack("<4f", 5, 5, 5, 5)).decode()}], "body": body}
        rows.execute("UPDATE jobs SET request = ?, request_version = 0 WHERE id = ?", (json.dumps(kept).encode(), wrapped))
    rows.close()
    s.start()
    check_all(s, at, names, expected)
    done = ok(s.ask("GET", f"/v1/jobs/{wrapped}?wait=30"))
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [6, 7, 8, 9], done


def a_row_that_cannot_be_read_fails_its_job_alone(s):
    at = halted(s)
    add = {"program": {"text": ADD}, "arguments": [[1, 2, 3, 4], [1, 1, 1, 1]]}
    large = {"program": {"text": SUM % (LARGE, LARGE)}, "arguments": [{"dtype": "uint8", "shape": [LARGE], "base64": base64.b64encode(bytes(LARGE)).decode()}]}
    names = start_all(s, at, {"newer": add, "cut": add, "no blob": large, "whole": add})
    s.stop(signal.SIGKILL)
    with database(s) as rows:
        rows.execute("UPDATE jobs SET request_version = 99, request = ? WHERE id = ?", (b'{"version":99}', names["newer"]))
        rows.execute("UPDATE jobs SET request = substr(request, 1, length(request) - 1) WHERE id = ?", (names["cut"],))
    rows.close()
    for path in requests_kept(s):
        path.unlink()
    s.start()
    # Each halts the session, which is resumed each time.
    for name, code in (("newer", "internal"), ("cut", "internal"), ("no blob", "storage_failed")):
        ok(s.ask("POST", f"/v1/sessions/{at}:resume"))
        ended = ok(s.ask("GET", f"/v1/jobs/{names[name]}?wait=30"))
        assert (ended["state"], ended["error"]["code"]) == ("failed", code), ended
    ok(s.ask("POST", f"/v1/sessions/{at}:resume"))
    assert ok(s.ask("GET", f"/v1/jobs/{names['whole']}?wait=30"))["state"] == "done"


def what_waits_counts_in_the_quota(s):
    with Meshd(s.binary, "--principal-bytes", str(3 * LARGE)) as mine:
        at = halted(mine)
        held = lambda: ok(mine.ask("GET", "/v1/me"))["usage"]["array_bytes"]
        large = {"program": {"text": SUM % (LARGE, LARGE)}, "arguments": [{"dtype": "uint8", "shape": [LARGE], "base64": base64.b64encode(os.urandom(LARGE)).decode()}]}
        before = held()
        names = [ok(mine.ask("POST", f"/v1/sessions/{at}/jobs", large, ASYNC), 202)["id"] for _ in range(2)]
        assert held() - before >= 2 * LARGE, held()
        refused(mine.ask("POST", f"/v1/sessions/{at}/jobs", large, ASYNC), 413, "quota_exceeded", "keeps until it is over")
        mine.stop(signal.SIGKILL)
        mine.start()
        assert held() - before >= 2 * LARGE, "it counts after a restart, too"
        ok(mine.ask("DELETE", f"/v1/jobs/{names[0]}"), 202)
        until(lambda: held() - before < 2 * LARGE, "a cancelled job frees its part")
        ok(mine.ask("POST", f"/v1/sessions/{at}:resume"))
        assert ok(mine.ask("GET", f"/v1/jobs/{names[1]}?wait=30"))["state"] == "done"
        until(lambda: held() == before, "a job that is over frees its part")


def a_start_says_that_it_goes_on(s):
    """While jobs are planned again the server lives, is not ready, and asks clients to come again."""
    def adding(count, other):
        lines = "".join(f"  %{i} = stablehlo.{'subtract' if i == other else 'add'} %{i - 1}, %a : tensor<4xf32>\n" for i in range(1, count))
        return f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = stablehlo.negate %a : tensor<4xf32>\n{lines}  return %{count - 1} : tensor<4xf32>\n}}"

    at = halted(s)
    jobs = [ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": adding(2_000, 1 + i)}, "arguments": [[1, 2, 3, 4]]}, ASYNC), 202)["id"]
            for i in range(30)]
    s.stop(signal.SIGKILL)
    seen = []
    s.start(on_not_ready=lambda: seen.append((s.ask("GET", "/livez")[0], s.ask("GET", "/startupz")[0], s.ask("GET", "/v2/health/ready")[0],
                                              s.ask("GET", "/health"), s.ask("GET", f"/v1/jobs/{jobs[0]}"))))
    live, started, ready, health, job = seen[0]
    assert (live, started, ready) == (200, 503, 503), seen[0]
    assert [check["name"] for check in ok(health, 503)["checks"] if not check["ok"]] == ["recovery"], health
    refused(job, 503, "starting")
    assert job[1]["Retry-After"] == "1"
    ok(s.ask("GET", "/startupz"))
    ok(s.ask("POST", f"/v1/sessions/{at}:resume"))
    assert [ok(s.ask("GET", f"/v1/jobs/{job}?wait=30"))["state"] for job in jobs] == ["done"] * len(jobs)


def a_job_records_what_computed_it(s):
    at = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    job = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": PAIR}, "arguments": [[1, 2], 3]}))["job"]
    with database(s) as rows:
        text = rows.execute("SELECT text FROM environments e JOIN jobs j ON j.environment = e.id WHERE j.id = ?", (job,)).fetchone()[0]
        assert rows.execute("SELECT count(*) FROM environments").fetchone() == (1,)
    for word in ("meshd ", "products f32 ", "openblas "):
        assert word in text, text


if __name__ == "__main__":
    sys.exit(run_stories([a_waiting_job_gives_what_its_request_gives_at_once, a_job_of_an_older_server_runs, a_row_that_cannot_be_read_fails_its_job_alone,
                          what_waits_counts_in_the_quota, a_start_says_that_it_goes_on, a_job_records_what_computed_it]))
