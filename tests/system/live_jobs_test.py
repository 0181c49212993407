"""Effects of a streaming job are read, and durable, while it runs; a job that fails or is cancelled leaves what it did and an entry that says
so; kill -9 in its middle loses, repeats and changes nothing. Prints how long effects take to reach a reader."""
import http.client
import json
import pathlib
import signal
import statistics
import sys
import threading
import time

from server import ok, refused, run_stories, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "behaviours"))
from programs import call  # noqa: E402

CONSTANTS = ("  %zero = stablehlo.constant dense<0> : tensor<i32>\n  %one = stablehlo.constant dense<1> : tensor<i32>\n")


def logs(body="", after="", work=16384, kind="ordered"):
    """Takes n; n iterations, each of them some microseconds of work and a log of its number; `body` is in each of them behind its log."""
    token = "t" if kind == "ordered" else None
    carried = "%t = %token, %i = %zero" if token else "%i = %zero"
    types = "!stablehlo.token, tensor<i32>" if token else "tensor<i32>"
    result = "%u = " if token else ""
    return ("func.func @main(" + ("%token: !stablehlo.token {jax.token = true}, " if token else "") + "%n: tensor<i32>) -> ("
            + ("!stablehlo.token {jax.token = true}, " if token else "") + "tensor<i32>) {\n" + CONSTANTS
            + f"  %r{':2' if token else ''} = stablehlo.while({carried}) : {types} cond {{\n"
            "    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n"
            "  } do {\n"
            f"    %v = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<{work}xi32>\n"
            f"    %m = stablehlo.reduce(%v init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<{work}xi32>, tensor<i32>) -> tensor<i32>\n"
            f"    {result}{call([('m', 'tensor<i32>')], token=token)}\n{body}"
            "    %j = stablehlo.add %m, %one : tensor<i32>\n"
            f"    stablehlo.return {'%u, ' if token else ''}%j : {types}\n  }}\n{after}"
            + ("  return %r#0, %r#1 : !stablehlo.token, tensor<i32>\n}" if token else "  return %r : tensor<i32>\n}"))


class Reader(threading.Thread):
    """Reads a session's stream of events as a client does; `events` are (when it came, kind, document)."""

    def __init__(self, server, session, after=0):
        super().__init__(daemon=True)
        self.events, self.start_of_stream, self.changed = [], [], threading.Condition()
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.connection.request("GET", f"/v1/sessions/{session}/events?after={after}")
        self.answer = self.connection.getresponse()
        self.start()

    def run(self):
        kind, first = "message", True
        try:
            for line in self.answer:
                line = line.decode().rstrip("\r\n")
                if first and line:
                    self.start_of_stream.append(line)
                if not line:
                    kind, first = "message", False
                elif line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    with self.changed:
                        self.events.append((time.time(), kind, json.loads(line[6:])))
                        self.changed.notify_all()
        except (OSError, http.client.HTTPException, ValueError):
            pass

    def wait(self, condition, what, seconds=60):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self.events), seconds), f"not within {seconds} s: {what}"
            return list(self.events)

    def effects(self):
        return [document for _, kind, document in list(self.events) if kind == "effect"]


def session_of(server, **options):
    return ok(server.ask("POST", "/v1/sessions", options), 201)["id"]


def start(server, session, text, arguments, **options):
    body = {"program": {"text": text}, "arguments": arguments, **options}
    return ok(server.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]


def log_of(server, session):
    out, after = [], 0
    while True:
        page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?limit=1000&after={after}"))
        out += page["items"]
        if not page["next"]:
            break
        after = page["next"]
    assert [entry["sequence"] for entry in out] == list(range(1, len(out) + 1)), "the log has a gap or a repetition"
    return out


def numbers(entries):
    return [entry["values"][0]["data"] for entry in entries if entry["effect"] == "log"]


def ended(server, job):
    return until(lambda: (lambda found: found if found["state"] in ("done", "failed", "cancelled") else None)(ok(server.ask("GET", f"/v1/jobs/{job}?wait=5"))),
                 f"the end of {job}", 600)  # a sanitizer may need minutes


def a_reader_sees_effects_of_a_running_job(server):
    session = session_of(server)
    reader = Reader(server, session)
    job = start(server, session, logs(), [1_000_000], effects="streaming")
    seen = reader.wait(lambda events: len(events) >= 50, "50 effects of a running job")
    assert ok(server.ask("GET", f"/v1/jobs/{job}"))["state"] == "running"
    shown = numbers(reader.effects())
    assert shown == list(range(len(shown))), shown[:10]
    # One page: whoever follows a log that grows as fast as it is read comes to its end when the job is over.
    page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?limit=50"))["items"]
    assert [entry["sequence"] for entry in page] == list(range(1, 51)), "the log has a gap or a repetition"
    assert numbers(page) == list(range(50)), "what the stream showed is in the log"
    assert seen[0][2]["job"] == job
    ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
    assert ended(server, job)["state"] == "cancelled"
    log = log_of(server, session)
    assert (log[-1]["effect"], log[-1]["name"], log[-1]["job"], log[-1]["values"]) == ("cancelled", "cancelled", job, []), log[-1]
    assert numbers(log) == list(range(len(log) - 1))
    reader.wait(lambda events: events[-1][2] == log[-1], "the entry that ends it")


def a_failed_job_leaves_what_it_did_and_says_so(server):
    session = session_of(server)
    reader = Reader(server, session)
    job = start(server, session, logs(), [10_000_000], effects="streaming", deadline=1.0, results={"encoding": "array"})
    over = ended(server, job)
    assert (over["state"], over["error"]["code"]) == ("failed", "deadline_exceeded"), over
    log = log_of(server, session)
    assert len(log) > 10, "it had a second"
    assert (log[-1]["effect"], log[-1]["name"], log[-1]["job"]) == ("failed", "deadline_exceeded", job), log[-1]
    assert numbers(log) == list(range(len(log) - 1)), "what it did stands before it"
    reader.wait(lambda events: [event for event in events if event[1] == "effect"][-1:] and events[-1][2] == log[-1], "the end in the stream")
    assert ok(server.ask("GET", "/v1/arrays"))["items"] == [], "its results were atomic: there are none"
    # The session goes on behind it.
    after = start(server, session, logs(), [3])
    assert ended(server, after)["state"] == "done"
    assert numbers(log_of(server, session)[len(log):]) == [0, 1, 2]


def a_job_without_effects_in_the_log_leaves_no_entry(server):
    session = session_of(server)
    job = start(server, session, logs(), [10_000_000], deadline=0.3)
    assert ended(server, job)["state"] == "failed"
    assert log_of(server, session) == [], "an atomic job that failed has left nothing, and nothing says that it ended"


def effects_of_a_job_come_behind_those_of_jobs_before_it(server):
    session = session_of(server, effects="streaming")
    assert ok(server.ask("GET", f"/v1/sessions/{session}"))["effects"] == "streaming"
    first = start(server, session, logs(), [30_000], effects="atomic")
    second = start(server, session, logs(work=16), [300])
    third = start(server, session, logs(work=16, kind="unordered"), [200])
    fourth = start(server, session, logs(work=16, kind="unordered"), [100], effects="atomic")
    for job in (first, second, third, fourth):
        assert ended(server, job)["state"] == "done"
    order = [entry["job"] for entry in log_of(server, session)]
    assert order == [first] * 30_000 + [second] * 300 + [third] * 200 + [fourth] * 100, "effects are not in the order of jobs"
    answer = ok(server.ask("GET", f"/v1/jobs/{second}"))["answer"]
    assert (answer["effects"], answer["streamed"]) == ([], {"count": 300, "first": 30_001, "last": 30_300}), answer
    assert "streamed" not in ok(server.ask("GET", f"/v1/jobs/{first}"))["answer"]


def a_run_that_waits_streams_as_well(server):
    session = session_of(server)
    reader = Reader(server, session)
    body = {"program": {"text": logs(work=65536)}, "arguments": [2000], "effects": "streaming", "session": session}
    answers = []
    run = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/run", body)))
    run.start()
    reader.wait(lambda events: len(events) > 5, "effects of a run that has not answered")
    seen_before_answer = not answers
    run.join()
    assert seen_before_answer
    assert ok(answers[0])["streamed"] == {"count": 2000, "first": 1, "last": 2000}
    assert numbers(log_of(server, session)) == list(range(2000))


def without_a_session_there_is_no_log_to_stream_to(server):
    text = logs()
    refused(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [1], "effects": "streaming"}), 422, "invalid_request")
    ok(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [1], "effects": "atomic"}))
    refused(server.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [1], "effects": "sometimes"}), 422, "invalid_request")


def callbacks_are_answered_beside_streamed_effects(server):
    session = session_of(server)
    body = (f"    %w:2 = {call([('m', 'tensor<i32>')], results=['tensor<i32>'], index=1, token='u')}\n")
    text = logs(body).replace("%j = stablehlo.add %m", "%j = stablehlo.add %w#1").replace("return %u, %j", "return %w#0, %j")
    job = start(server, session, text, [3], effects="streaming", callbacks={"1": {"effect": "callback", "name": "twice", "live": True}})
    for number in range(3):
        asked = until(lambda: ok(server.ask("GET", f"/v1/sessions/{session}/callbacks?after={number}"))["items"], "a callback request")
        value = asked[0]["values"][0]["data"]
        assert value == number
        log = log_of(server, session)
        assert numbers(log)[-1] == number, "what happened before the request is there when it is asked"
        ok(server.ask("POST", f"/v1/sessions/{session}/callbacks/{asked[0]['number']}", {"values": [{"dtype": "int32", "shape": [], "data": value}]}))
    assert ended(server, job)["state"] == "done"
    assert [entry["effect"] for entry in log_of(server, session)] == ["log", "callback"] * 3


def progress_counts_what_the_program_says(server):
    session = session_of(server)
    reader = Reader(server, session)
    known = ("func.func @main(%a: tensor<16384xf32>) -> tensor<16384xf32> {\n" + CONSTANTS + "  %n = stablehlo.constant dense<600000> : tensor<i32>\n"
             "  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<16384xf32> cond {\n"
             "    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n"
             "  } do {\n    %y = stablehlo.sine %x : tensor<16384xf32>\n    %j = stablehlo.add %i, %one : tensor<i32>\n"
             "    stablehlo.return %j, %y : tensor<i32>, tensor<16384xf32>\n  }\n  return %r#1 : tensor<16384xf32>\n}")
    job = start(server, session, known, [[0.5] * 16384], results={"encoding": "none"})
    reader.wait(lambda events: sum(kind == "progress" for _, kind, _ in events) >= 2, "two events of progress")
    told = [document for _, kind, document in reader.events if kind == "progress"]
    assert all(one["job"] == job for one in told)
    assert told[0]["progress"]["percent"] < told[1]["progress"]["percent"] <= 100, told
    progress = ok(server.ask("GET", f"/v1/jobs/{job}"))["progress"]
    assert progress["loop"]["iterations"] == 600000 and 0 < progress["loop"]["iterations_done"] <= 600000, progress
    assert progress["steps_done"] < progress["steps_total"] and progress["remaining_seconds"] > 0, progress
    total = progress["steps_total"]
    over = ended(server, job)
    assert over["answer"]["statistics"]["steps"] == total, (over["answer"]["statistics"], total)
    # The number of iterations is an argument: nobody knows how far it is.
    job = start(server, session, logs(), [1_000_000])
    until(lambda: ok(server.ask("GET", f"/v1/jobs/{job}")).get("progress", {}).get("loop"), "a loop")
    until(lambda: ok(server.ask("GET", f"/v1/jobs/{job}"))["progress"]["running_seconds"] > 1.1, "a second")
    progress = ok(server.ask("GET", f"/v1/jobs/{job}"))["progress"]
    assert progress["loop"]["iterations_done"] > 0
    assert not {"steps_total", "percent", "remaining_seconds"} & set(progress) and "iterations" not in progress["loop"], progress
    ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
    assert reader.start_of_stream[0].startswith(":") and reader.start_of_stream[1].startswith("retry: "), reader.start_of_stream


def lists_of_jobs_begin_with_the_newest(server):
    ann = {"Authorization": "Bearer lists"}
    text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    program = ok(server.ask("POST", "/v1/programs", text, {"Content-Type": "text/plain", **ann}), 201)["id"]
    session = ok(server.ask("POST", "/v1/sessions", {}, ann), 201)["id"]
    jobs = []
    for i in range(6):
        chosen = {"id": program} if i % 2 else {"text": text}
        path = f"/v1/sessions/{session}/jobs" if i < 4 else "/v1/run"
        made = server.ask("POST", path, {"program": chosen, "arguments": [i]}, {"Prefer": "wait=30", **ann})
        jobs.append(made[1]["Location"].rsplit("/", 1)[1])

    def listed(query):
        out, path = [], f"/v1/jobs?limit=2{query}"
        while path:
            status, headers, page = server.ask("GET", path, None, ann)
            assert status == 200, page
            out += [job["id"] for job in page["items"]]
            path = headers["Link"].split("<")[1].split(">")[0] if page["next"] else None
        return out

    newest = jobs[::-1]
    assert listed("") == newest
    assert listed("&state=done") == newest and listed("&state=failed") == []
    assert listed(f"&program={program}") == [jobs[5], jobs[3], jobs[1]]
    assert listed(f"&session={session}") == newest[2:]
    assert listed(f"&session={session}&program={program}&state=done") == [jobs[3], jobs[1]]
    assert [job["id"] for job in ok(server.ask("GET", f"/v1/sessions/{session}/jobs?state=done", None, ann))["items"]] == newest[2:]
    for query in ("state=over", "program=mine", "program=", "session=ses_1", "status=done"):
        assert server.ask("GET", f"/v1/jobs?{query}", None, ann)[0] in (400, 404, 422), query


def a_mesh_is_taken_by_its_id_everywhere(server):
    inline = {"axis_names": ["x"], "shape": [2], "devices": [0, 1]}
    mesh = server.ask("POST", "/v1/meshes", inline)[2]["id"]
    unknown = "mesh_" + "0" * 32
    text = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }"
    program = server.ask("POST", "/v1/programs", text, {"Content-Type": "text/plain"})[2]["id"]
    session = session_of(server)
    run = {"program": {"id": program}, "arguments": [[1, 2, 3, 4]], "in_shardings": [{"spec": [["x"]]}]}
    for named in (mesh, {"id": mesh}, inline):
        answer = ok(server.ask("POST", "/v1/run", {**run, "mesh": named}))
        assert answer["shardings"]["results"] == [{"spec": [["x"]]}], answer["shardings"]
        for verb in (":explain", ":partition", ":suggest"):
            ok(server.ask("POST", f"/v1/programs/{program}{verb}", {"mesh": named, "in_shardings": run["in_shardings"]}))
        ok(server.ask("POST", f"/v1/sessions/{session}/mesh", {"mesh": named}))
        resolved = ok(server.ask("POST", "/v1/shardings:resolve", {"shape": [4], "mesh": named, "spec": [["x"]]}))
        assert resolved["shard_shape"] == [2]
        part = {"value": {"dtype": "float32", "shape": [2], "data": [1, 2]}}
        array = ok(server.ask("POST", "/v1/arrays:assemble", {"shape": [4], "mesh": named, "spec": [["x"]],
                                                              "shards": [{"device": 0, **part}, {"device": 1, **part}]}), 201)
        moved = ok(server.ask("POST", f"/v1/arrays/{array['id']}:reshard", {"mesh": named, "spec": [[]]}), 201)
        assert array["mesh"] == moved["mesh"] == mesh, (array, moved)
    for path, body in (("/v1/run", run), (f"/v1/programs/{program}:explain", {}), (f"/v1/sessions/{session}/mesh", {}),
                       ("/v1/shardings:resolve", {"shape": [4], "spec": [["x"]]})):
        assert server.ask("POST", path, {**body, "mesh": unknown})[0] == 404, path
        assert server.ask("POST", path, {**body, "mesh": {"id": unknown}})[0] == 404, path
    # By symbol, where a program has several.
    annotated = text.replace("func.func", 'module { sdy.mesh @mesh = <["x"=2]>\n func.func').replace(
        "%a: tensor<4xf32>)", '%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})') + " }"
    ok(server.ask("POST", "/v1/run", {"program": {"text": annotated}, "arguments": [[1, 2, 3, 4]], "meshes": {"mesh": mesh}}))
    # A job keeps the mesh that it was accepted with.
    two = {**run, "mesh": server.ask("POST", "/v1/meshes", {"axis_names": ["x"], "shape": [2], "devices": [4, 5]})[2]["id"]}
    blocker = start(server, session, logs(), [200_000])
    job = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {**two, "results": {"encoding": "array"}}, {"Prefer": "respond-async"}), 202)["id"]
    ok(server.ask("DELETE", f"/v1/meshes/{two['mesh']}"), 204)
    server.stop(signal.SIGKILL)
    server.start()
    ok(server.ask("DELETE", f"/v1/jobs/{blocker}"), 202)
    results = ended(server, job)["answer"]["results"]
    stored = ok(server.ask("GET", f"/v1/arrays/{results[0]['array']}"))
    assert stored["mesh"] == two["mesh"]


def the_mesh_of_a_program_is_there_for_arrays_on_it(server):
    text = ('module { sdy.mesh @mesh = <["rows"=2, "columns"=3]>\n func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, '
            '{"columns"}]>}) -> tensor<4x6xf32> { %0 = stablehlo.add %a, %a : tensor<4x6xf32> return %0 : tensor<4x6xf32> } }')
    zeros = {"dtype": "float32", "shape": [4, 6], "data": [[0] * 6] * 4}
    for durability in ("durable", "memory"):
        answer = ok(server.ask("POST", "/v1/run", {"program": {"text": text.replace("rows", durability)}, "arguments": [zeros],
                                                   "results": {"encoding": "array", "durability": durability}}))
        array = ok(server.ask("GET", f"/v1/arrays/{answer['results'][0]['array']}"))
        mesh = ok(server.ask("GET", f"/v1/meshes/{array['mesh']}"))
        assert [axis["name"] for axis in mesh["axes"]] == [durability, "columns"] and mesh["device_ids"] == list(range(6)), mesh
        ok(server.ask("GET", f"/v1/meshes/{mesh['abstract']}"))
        # It serves as any other.
        ok(server.ask("POST", f"/v1/arrays/{array['id']}:reshard", {"mesh": array["mesh"], "spec": [["columns"], []]}), 201)
        assert server.ask("GET", f"/v1/meshes/{array['mesh']}", None, {"Authorization": "Bearer other"})[0] == 404


def kill_9_loses_repeats_and_changes_nothing(server):
    """Killed while a streaming job commits batch after batch: what readers saw stays, the job goes on and ends, each effect once."""
    for rounds in (1, 2):
        session = session_of(server)
        count = 15_000
        job = start(server, session, logs(work=1 << 20), [count], effects="streaming")
        for _ in range(rounds):
            have = ok(server.ask("GET", f"/v1/sessions/{session}"))["last_sequence"]
            reader = Reader(server, session, have)
            reader.wait(lambda events: sum(kind == "effect" for _, kind, _ in events) > 300, "effects")
            server.stop(signal.SIGKILL)
            seen = reader.effects()
            server.start()
            page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?limit=300&after={have}"))["items"]
            assert page == seen[:300] and len(page) == 300, "what a reader has seen is gone or differs"
        over = ended(server, job)
        assert (over["state"], over["attempt"]) == ("done", 1 + rounds), over
        assert over["answer"]["streamed"] == {"count": count, "first": 1, "last": count}
        assert numbers(log_of(server, session)) == list(range(count))


def a_job_that_crashes_the_server_three_times_is_marked(server):
    session = session_of(server)
    job = start(server, session, logs(), [10_000_000], effects="streaming")
    cancelled_session = session_of(server)
    seen = 0
    for attempt in range(3):
        # More than its run before: it has begun again, which is stored before its effects.
        until(lambda: ok(server.ask("GET", f"/v1/sessions/{session}"))["last_sequence"] > seen + 20, "effects")
        seen = ok(server.ask("GET", f"/v1/sessions/{session}"))["last_sequence"]
        if attempt == 2:
            cancelled = start(server, cancelled_session, logs(), [10_000_000], effects="streaming")
            until(lambda: ok(server.ask("GET", f"/v1/sessions/{cancelled_session}/effects"))["items"], "effects")
            ok(server.ask("DELETE", f"/v1/jobs/{cancelled}"), 202)
        server.stop(signal.SIGKILL)
        server.start()
    over = ok(server.ask("GET", f"/v1/jobs/{job}"))
    assert (over["state"], over["error"]["code"]) == ("failed", "crashed"), over
    log = log_of(server, session)
    assert (log[-1]["effect"], log[-1]["name"]) == ("failed", "crashed")
    assert numbers(log) == list(range(len(log) - 1))
    log = log_of(server, cancelled_session)
    assert [entry["effect"] for entry in log if entry["effect"] != "log"] == ["cancelled"] and log[-1]["effect"] == "cancelled"


def a_stream_ends_with_its_session(server):
    session = session_of(server)
    reader = Reader(server, session)
    job = start(server, session, logs(work=1), [3])
    assert ended(server, job)["state"] == "done"
    reader.wait(lambda events: sum(kind == "effect" for _, kind, _ in events) == 3, "the effects of the job")
    assert server.ask("DELETE", f"/v1/sessions/{session}")[0] == 204
    reader.wait(lambda events: events and events[-1][1:] == ("closed", {}), "the event that ends a stream")
    reader.join(60)
    assert not reader.is_alive(), "the stream goes on behind closed"
    assert server.ask("GET", f"/v1/sessions/{session}/events")[0] == 404


def effects_reach_their_reader_soon(server):
    """Prints how long they take: a value is fed to a running program, which logs it at once. The time from the feed's answer to the reader
    bounds what the effect took: before it, the value was durable, and the program could not have it."""
    session = session_of(server)
    reader = Reader(server, session)
    infeed = ('    %f:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)\n')
    text = logs(work=1).replace("  } do {\n", "  } do {\n" + infeed).replace("(%t, %m)", "(%f#1, %f#0)")
    count = 200
    job = start(server, session, text, [count], effects="streaming")
    answered = {}
    for number in range(count):
        feed = {"values": [{"dtype": "int32", "shape": [], "data": number}]}
        assert server.ask("POST", f"/v1/sessions/{session}/infeed", feed)[0] in (200, 201)
        answered[number] = time.time()
        reader.wait(lambda events: sum(kind == "effect" for _, kind, _ in events) > number, "the value that was fed")
    assert ended(server, job)["state"] == "done"
    taken = sorted(max(0, when - answered[document["values"][0]["data"]]) * 1e3 for when, kind, document in reader.events if kind == "effect")
    assert len(taken) == count
    print(f"  {count} effects were read {statistics.median(taken):.1f} ms (median), {taken[int(count * 0.99)]:.1f} ms (p99) behind the feed")


STORIES = [
    a_reader_sees_effects_of_a_running_job,
    a_failed_job_leaves_what_it_did_and_says_so,
    a_job_without_effects_in_the_log_leaves_no_entry,
    effects_of_a_job_come_behind_those_of_jobs_before_it,
    a_run_that_waits_streams_as_well,
    without_a_session_there_is_no_log_to_stream_to,
    callbacks_are_answered_beside_streamed_effects,
    progress_counts_what_the_program_says,
    lists_of_jobs_begin_with_the_newest,
    a_stream_ends_with_its_session,
    a_mesh_is_taken_by_its_id_everywhere,
    the_mesh_of_a_program_is_there_for_arrays_on_it,
    kill_9_loses_repeats_and_changes_nothing,
    a_job_that_crashes_the_server_three_times_is_marked,
    effects_reach_their_reader_soon,
]

sys.exit(run_stories(STORIES))
