"""Jobs in the background: queues that are fair, jobs that wait without a thread, cancel and deadlines of what waits, drain and crashes."""
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback

from server import COUNT, SPIN, Meshd, ok
from server import until as until_within

BINARY = sys.argv[1]
ASYNC = {"Prefer": "respond-async"}
DEADLINE = 60
ENDLESS = 2_000_000_000
# Takes an entry of the session's queue and adds it.
TAKES = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %1 = stablehlo.add %a, %0#0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
SMALL = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %a, %a : tensor<f32> return %0 : tensor<f32> }"


def until(condition, what):
    return until_within(condition, what, seconds=DEADLINE)


class Client:
    def __init__(self, server, token=None):
        self.server, self.headers = server, {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, {**self.headers, **(headers or {})})

    def session(self):
        return ok(self.ask("POST", "/v1/sessions"), 201)["id"]

    def post(self, text, arguments, session=None, **fields):
        where = f"/v1/sessions/{session}/jobs" if session else "/v1/run"
        return self.ask("POST", where, {"program": {"text": text}, "arguments": arguments, **fields}, ASYNC)

    def start(self, *arguments, **fields):
        return ok(self.post(*arguments, **fields), 202)["id"]

    def job(self, job, wait=0):
        return ok(self.ask("GET", f"/v1/jobs/{job}" + (f"?wait={wait}" if wait else "")))

    def runs(self, job):
        """Runs, and its row says so."""
        return until(lambda: (lambda seen: "started" in seen and seen.get("progress", {}).get("steps_done", 0) > 0)(self.job(job)), "the job runs")

    def ended(self, job):
        return until(lambda: (lambda seen: seen if seen["state"] not in ("queued", "running") else None)(self.job(job, 5)), "the job is over")

    def cancel(self, job):
        return ok(self.ask("DELETE", f"/v1/jobs/{job}"), 202)


def on(device):
    return {"axis_names": ["x"], "devices": [device]}


def is_draining(client):
    try:
        return client.ask("GET", "/readyz")[0] == 503
    except OSError:
        return True  # it takes no more connections


def threads_of(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def a_waiting_job_is_cancelled_at_once():
    with Meshd(BINARY) as server:
        client = Client(server)
        running = [client.start(SPIN, [ENDLESS], mesh=on(n)) for n in range(4)]
        for job in running:
            client.runs(job)
        waiting = client.start(SPIN, [ENDLESS])
        assert client.job(waiting)["state"] == "queued"
        assert client.cancel(waiting)["state"] == "cancelled", "the answer to DELETE says it already"
        seen = client.job(waiting)
        assert seen["error"]["code"] == "cancelled" and "started" not in seen, seen
        assert client.ask("DELETE", f"/v1/jobs/{waiting}")[0] == 204, "a job that is over is deleted"
        assert client.ask("GET", f"/v1/jobs/{waiting}")[0] == 404
        late = client.start(SPIN, [ENDLESS], deadline=0.2)
        seen = client.ended(late)
        assert seen["state"] == "failed" and seen["error"]["code"] == "deadline_exceeded" and "started" not in seen, seen
        assert all(client.job(job)["state"] == "running" for job in running), "others go on"
        for job in running:
            client.cancel(job)
            assert client.ended(job)["state"] == "cancelled"
        assert client.ended(client.start(SMALL, [2.0]))["state"] == "done", "their places are free"


def jobs_that_wait_keep_no_thread():
    """For their client, for their session's turn, and with a barrier behind each of them."""
    with Meshd(BINARY) as server:
        client = Client(server)
        ok(client.ask("POST", "/v1/run", {"program": {"text": SMALL}, "arguments": [1.0]}))
        client.ended(client.start(SMALL, [1.0]))
        before = threads_of(server)
        sessions = [client.session() for _ in range(30)]
        first = [client.start(TAKES, [[n, n, n, n]], session=at) for n, at in enumerate(sessions)]
        second = [client.start(TAKES, [[n, n, n, n]], session=at) for n, at in enumerate(sessions)]
        for job in first:
            until(lambda job=job: client.job(job).get("progress", {}).get("waits_for"), "the job waits for its client")
        barriers, answers = [], []
        for at in sessions:
            barriers.append(threading.Thread(target=lambda at=at: answers.append(client.ask("POST", f"/v1/sessions/{at}/barrier")[0])))
            barriers[-1].start()
        assert client.ended(client.start(SMALL, [1.0]))["state"] == "done", "jobs that need nobody still run"
        # Requests that come together may start a thread each for a moment; the 60 jobs have none.
        assert threads_of(server) <= before + len(barriers) + 8, f"{before} threads became {threads_of(server)}"
        client.cancel(second[-1])
        assert client.ended(second[-1])["state"] == "cancelled", "one that waits for its turn can be cancelled"
        for at in sessions:
            for _ in range(2):
                ok(client.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [{"dtype": "float32", "shape": [4], "data": [1, 1, 1, 1]}]}), 201)
        for n, job in enumerate(first):
            assert client.ended(job)["answer"]["results"][0]["data"] == [n + 1] * 4
        for job in second[:-1]:
            assert client.ended(job)["state"] == "done"
        for barrier in barriers:
            barrier.join(DEADLINE)
        assert answers == [200] * 30, answers


def principals_share_the_background():
    folder = tempfile.mkdtemp(prefix="meshd-test-")
    with open(folder + "/tokens", "w") as tokens:
        tokens.write("flood one\nsmall two\n")
    with Meshd(BINARY, "--tokens", folder + "/tokens") as server:
        flood, small = Client(server, "one"), Client(server, "two")
        for at in [flood.session() for _ in range(20)]:
            flood.start(SPIN, [ENDLESS], session=at, mesh=on(0))
        assert small.ended(small.start(SMALL, [1.0], mesh=on(7)))["state"] == "done", "all slots are taken, but none of them is this principal's"
        refused = None
        for _ in range(300):
            answer = flood.post(SPIN, [ENDLESS])
            if answer[0] == 429:
                refused = answer
                break
        assert refused and refused[2]["code"] == "queue_full" and "at most 256" in refused[2]["detail"], refused
        assert refused[1]["RateLimit"] == '"jobs";r=0' and refused[1]["Retry-After"], refused[1]
        answer = small.post(SMALL, [1.0], mesh=on(7))
        assert answer[0] == 202 and answer[1]["RateLimit"] != '"jobs";r=0', "the queue is not full for others"
        assert small.ended(answer[2]["id"])["state"] == "done"


def a_drain_puts_back_what_runs():
    with Meshd(BINARY, "--drain-timeout", "1") as server:
        client = Client(server)
        at = client.session()
        jobs = [client.start(SPIN, [ENDLESS], mesh=on(n)) for n in range(4)]
        for job in jobs:
            client.runs(job)
        queued = client.start(SPIN, [ENDLESS])
        waiting = client.start(TAKES, [[1, 2, 3, 4]], session=at)
        until(lambda: client.job(waiting).get("progress", {}).get("waits_for") or client.job(waiting)["state"] == "queued", "it waits")
        for restart in range(4):  # oftener than a job may be cut off
            answers = []
            run = threading.Thread(target=lambda: answers.append(client.ask("POST", "/v1/run", {"program": {"text": SPIN}, "arguments": [ENDLESS], "mesh": on(7)})))
            run.start()
            until(lambda: int(re.search(rb"meshd_http_requests_in_flight (\d+)", client.ask("GET", "/metrics")[2])[1]) >= 2, "the run is there")
            assert server.stop() == 0, "a drain ends in order, whatever runs"
            run.join(DEADLINE)
            assert answers and (answers[0][0], answers[0][2]["code"]) == (503, "draining"), answers
            server.start()
            for job in jobs + [queued, waiting]:
                seen = client.job(job)
                assert seen["state"] in ("queued", "running") and seen["attempt"] == 1, (restart, seen)
        for job in jobs + [queued, waiting]:
            client.cancel(job)
            assert client.ended(job)["state"] == "cancelled"


def the_second_signal_ends_at_once():
    with Meshd(BINARY, "--drain-timeout", "600") as server:
        client = Client(server)
        job = client.start(SPIN, [ENDLESS])
        client.runs(job)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: is_draining(client), "readiness falls")
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(DEADLINE)
        assert code in (128 + signal.SIGTERM, -signal.SIGTERM), code
        server.start()
        assert client.job(job)["attempt"] == 2, "that was a crash to the job"
        client.cancel(job)


def a_job_that_is_cut_off_three_times_fails():
    with Meshd(BINARY) as server:
        client = Client(server)
        at = client.session()
        job = client.start(SPIN, [ENDLESS], session=at)
        for attempt in (1, 2, 3):
            assert client.runs(job)
            assert client.job(job)["attempt"] == attempt
            server.stop(signal.SIGKILL)
            server.start()
        seen = client.job(job)
        assert seen["state"] == "failed" and seen["error"]["code"] == "crashed" and "3 times" in seen["error"]["detail"], seen
        assert client.ended(client.start(SMALL, [1.0], session=at))["state"] == "done", "the session goes on"


def a_cancel_that_was_acknowledged_survives_a_kill():
    """The server is killed right after the answers to DELETE. Jobs that were told to end do not run again: each is cancelled and has logged
    nothing, or had committed before."""
    logs = "func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<i32>) {\n" + COUNT + """
  %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %0) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  return %u, %0 : !stablehlo.token, tensor<i32> }"""
    rng, told = random.Random(20261123), {"cancelled": 0, "done": 0}
    with Meshd(BINARY) as server:
        client = Client(server)
        donated = ok(client.ask("POST", "/v1/arrays", {"dtype": "int32", "shape": [], "data": ENDLESS}), 201)["id"]
        endless = client.start(SPIN, [{"array": donated}], donate=[0])
        client.runs(endless)
        for n in range(40 if "MESHD_LONG" in os.environ else 6):
            sessions = [client.session() for _ in range(4)]
            jobs = [(client.start(logs, [rng.choice([ENDLESS, rng.randrange(10_000_000)])], at, callbacks={"0": {"effect": "log", "name": "n"}}, mesh=on(1 + k % 7)), at) for k, at in enumerate(sessions * 3)]
            time.sleep(rng.uniform(0, 0.05))
            answers = [(job, at, client.ask("DELETE", f"/v1/jobs/{job}")[0]) for job, at in rng.sample(jobs, len(jobs))]
            if n == 0:
                client.cancel(endless)
            server.stop(signal.SIGKILL)
            server.start()
            for job, at, status in answers:
                logged = [entry for entry in ok(client.ask("GET", f"/v1/sessions/{at}/effects"))["items"] if entry["job"] == job]
                if status == 204:
                    assert len(logged) == 1 and client.ask("GET", f"/v1/jobs/{job}")[0] == 404
                    continue
                seen = client.job(job)
                assert status == 202 and (seen["state"], len(logged)) in (("cancelled", 0), ("done", 1)), (status, seen, logged)
                told[seen["state"]] += 1
        assert client.job(endless)["state"] == "cancelled" and client.job(endless)["attempt"] == 1
        assert ok(client.ask("GET", f"/v1/arrays/{donated}"))["state"] == "ready"
        assert client.ask("DELETE", f"/v1/arrays/{donated}")[0] == 204, "what it was to donate is free"
        print(f"  {told}")
    assert told["cancelled"] > 10, told


def job_ids_are_each_principals_own():
    folder = tempfile.mkdtemp(prefix="meshd-test-")
    with open(folder + "/tokens", "w") as tokens:
        tokens.write("ann one\nbob two\neve three\n")
    with Meshd(BINARY, "--tokens", folder + "/tokens") as server:
        ann, bob, eve = (Client(server, token) for token in ("one", "two", "three"))
        path = "/v1/jobs/job_01890000-0000-7000-8000-00000000beef"
        put = lambda client, value: client.ask("PUT", path, {"program": {"text": SMALL}, "arguments": [value]}, {"If-None-Match": "*", "Prefer": "wait=30"})
        ok(put(ann, 1.0), 201)
        ok(put(bob, 2.0), 201)
        assert put(ann, 3.0)[0] == 412, "one principal's id is taken once"
        for _ in range(2):  # also after a restart
            for client, value in ((ann, 2.0), (bob, 4.0)):
                seen = until(lambda client=client: (lambda seen: seen if seen["state"] == "done" else None)(ok(client.ask("GET", path))), "it is done")
                assert seen["answer"]["results"][0]["data"] == value, seen
            assert eve.ask("GET", path)[0] == eve.ask("DELETE", path)[0] == 404
            assert server.stop() == 0
            server.start()


def devices_are_chosen_by_load():
    with Meshd(BINARY, "--devices", "4") as server:
        client = Client(server)
        busy = [client.start(SPIN, [ENDLESS], mesh=on(n)) for n in (0, 1)]
        for job in busy:
            client.runs(job)
        text = """module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32> } }"""
        body = {"program": {"text": text}, "arguments": [[1, 2, 3, 4]], "results": {"encoding": "array"}}
        devices = lambda answer: sorted(shard["device"] for shard in ok(client.ask("GET", f"/v1/arrays/{answer['results'][0]['array']}/shards"))["items"])
        assert devices(ok(client.ask("POST", "/v1/run", {**body, "devices": "least_loaded"}))) == [2, 3]
        plain = {**body, "mesh": {"axis_names": ["x"], "devices": [2, 3]}}
        refused = client.ask("POST", "/v1/run", {**plain, "devices": "least_loaded"})
        assert refused[0] == 422 and refused[2]["errors"][0]["pointer"] == "/devices", refused
        refused = client.ask("POST", "/v1/run", {**body, "devices": "fastest"})
        assert refused[0] == 422 and refused[2]["errors"][0]["pointer"] == "/devices", refused
        array = ok(client.ask("POST", "/v1/run", plain))["results"][0]["array"]
        again = {**body, "arguments": [{"array": array}], "devices": "least_loaded"}
        refused = client.ask("POST", "/v1/run", again)
        assert refused[0] == 422 and "[2,3]" in refused[2]["errors"][0]["detail"], refused
        assert devices(ok(client.ask("POST", "/v1/run", {**again, "reshard": True}))) == [2, 3]
        for job in busy:
            client.cancel(job)


def a_halted_session_stays_halted_over_a_restart():
    with Meshd(BINARY) as server:
        client = Client(server)
        session = ok(client.ask("POST", "/v1/sessions", {"on_error": "halt"}), 201)["id"]
        failed = client.start(SPIN, [ENDLESS], session, deadline=0.2)
        assert client.ended(failed)["error"]["code"] == "deadline_exceeded"
        held = []
        for how in (signal.SIGTERM, signal.SIGKILL):
            held.append(client.start(SMALL, [3], session))
            server.stop(how)
            server.start()
            seen = ok(client.ask("GET", f"/v1/sessions/{session}"))
            assert (seen["state"], seen["halted_by"], seen["on_error"]) == ("halted", 1, "halt"), seen
            assert all(client.job(job, 1)["state"] == "queued" for job in held)
        other = client.session()
        assert client.ended(client.start(SMALL, [1], other))["state"] == "done", "others go on"
        assert ok(client.ask("POST", f"/v1/sessions/{session}:resume"))["state"] == "open"
        assert all(client.ended(job)["state"] == "done" for job in held)
        ok(client.ask("POST", f"/v1/sessions/{session}/barrier"))


def promised_results_are_taken_before_they_are_there_and_over_restarts():
    """A chain of jobs, each of which donates what the one before it makes, is held, restarted twice and then runs."""
    text = """module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32> } }"""
    with Meshd(BINARY, "--devices", "2") as server:
        client = Client(server)
        session = ok(client.ask("POST", "/v1/sessions", {"on_error": "halt"}), 201)["id"]
        client.ended(client.start(SPIN, [ENDLESS], session, deadline=0.2))
        value, names, jobs = [1, 2, 3, 4], [], []
        for how in (signal.SIGTERM, signal.SIGKILL, None):
            queued = ok(client.post(text, [value], session, donate=[0], results={"encoding": "array"}), 202)
            [name] = queued["arrays"]
            assert ok(client.ask("GET", f"/v1/arrays/{name}"))["state"] == "pending"
            assert client.ask("GET", f"/v1/arrays/{name}/data")[0] == 409
            names.append(name)
            jobs.append(queued["id"])
            value = {"array": name}
            if how is not None:
                server.stop(how)
                server.start()
                assert client.job(jobs[-1])["arrays"] == [name]
                assert ok(client.ask("GET", f"/v1/arrays/{name}"))["state"] == "pending"
        ok(client.ask("POST", f"/v1/sessions/{session}:resume"))
        for job, name in zip(jobs, names):
            seen = client.ended(job)
            assert seen["state"] == "done" and seen["arrays"] == [name] and seen["answer"]["results"][0]["array"] == name, seen
        assert [ok(client.ask("GET", f"/v1/arrays/{name}"))["state"] for name in names] == ["donated", "donated", "ready"]
        server.stop(signal.SIGKILL)
        server.start()
        assert ok(client.ask("GET", f"/v1/arrays/{names[-1]}/data", headers={"Accept": "application/json"}))["data"] == [8, 16, 24, 32]


def a_job_that_cannot_run_again_frees_what_it_donates():
    text = """func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %b : tensor<2xf32>
  return %0 : tensor<2xf32> }"""
    with Meshd(BINARY) as server:
        client = Client(server)
        session = ok(client.ask("POST", "/v1/sessions", {"on_error": "halt"}), 201)["id"]
        client.ended(client.start(SPIN, [ENDLESS], session, deadline=0.2))
        value = {"dtype": "float32", "shape": [2], "data": [1, 2]}
        donated, lost = (ok(client.ask("POST", f"/v1/arrays?durability={how}", value), 201)["id"] for how in ("durable", "memory"))
        job = client.start(text, [{"array": donated}, {"array": lost}], session, donate=[0])
        assert client.ask("DELETE", f"/v1/arrays/{donated}")[0] == 409
        server.stop(signal.SIGKILL)
        server.start()
        assert client.job(job, 1)["state"] == "queued", "its session holds it like any other"
        assert client.ask("DELETE", f"/v1/arrays/{donated}")[0] == 409
        ok(client.ask("POST", f"/v1/sessions/{session}:resume"))
        assert client.ended(job)["error"]["code"] == "array_lost"
        assert client.ask("DELETE", f"/v1/arrays/{donated}")[0] == 204


def jobs_that_read_what_was_not_made_end_with_what_kept_it_from_them():
    """After a restart, too, where nothing is left of a promised array but the job that was to make it."""
    in_memory = {"results": {"encoding": "array", "durability": "memory"}}
    with Meshd(BINARY) as server:
        client = Client(server)
        session = ok(client.ask("POST", "/v1/sessions", {"on_error": "halt"}), 201)["id"]
        first = ok(client.post(SMALL, [1], session, **in_memory), 202)
        assert client.ended(first["id"])["state"] == "done"
        client.ended(client.start(SPIN, [ENDLESS], session, deadline=0.2))
        maker = ok(client.post(SMALL, [1], session, **in_memory), 202)
        reader = ok(client.post(SMALL, [{"array": maker["arrays"][0]}], session, **in_memory), 202)
        jobs = [(reader["id"], "dependency_failed", maker["id"]),
                (client.start(SMALL, [{"array": reader["arrays"][0]}], session), "dependency_failed", reader["id"]),
                (client.start(SMALL, [{"array": first["arrays"][0]}], session), "array_lost", first["arrays"][0])]
        client.cancel(maker["id"])
        server.stop(signal.SIGKILL)
        server.start()
        for job, _, _ in jobs:
            assert client.job(job, 1)["state"] == "queued", "the halted session holds it"
        status, _, problem = client.post(SMALL, [{"job": reader["id"], "result": 0}], session)
        assert (status, problem["code"]) == (409, "dependency_failed") and reader["id"] in problem["detail"], problem
        for job, code, named in jobs:
            ok(client.ask("POST", f"/v1/sessions/{session}:resume"))
            seen = client.ended(job)
            assert (seen["state"], seen["error"]["code"]) == ("failed", code) and named in seen["error"]["detail"], seen
            assert ok(client.ask("GET", f"/v1/sessions/{session}"))["halted_by"] == seen["number"], "each halts it again"
        ok(client.ask("POST", f"/v1/sessions/{session}:resume"))
        assert client.ended(client.start(SMALL, [1], session))["state"] == "done"


def main():
    failed = 0
    stories = [a_waiting_job_is_cancelled_at_once, jobs_that_wait_keep_no_thread, principals_share_the_background, a_drain_puts_back_what_runs,
               the_second_signal_ends_at_once, a_job_that_is_cut_off_three_times_fails, devices_are_chosen_by_load, a_halted_session_stays_halted_over_a_restart,
               promised_results_are_taken_before_they_are_there_and_over_restarts, a_job_that_cannot_run_again_frees_what_it_donates,
               jobs_that_read_what_was_not_made_end_with_what_kept_it_from_them,
               a_cancel_that_was_acknowledged_survives_a_kill, job_ids_are_each_principals_own]
    for story in stories:
        if sys.argv[2:] and story.__name__ not in sys.argv[2:]:
            continue
        try:
            story()
        except Exception:
            failed += 1
            print(f"FAILED {story.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{failed} stories failed")
    return 1 if failed else 0


sys.exit(main())
