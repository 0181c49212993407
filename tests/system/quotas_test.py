"""What one principal may have at once: exactly so much, however many ask together, and nothing of it is taken from others."""
import concurrent.futures
import pathlib
import socket
import subprocess
import sys

from server import SPIN
from shared_server import BINARY, DEADLINE, Shared, ok, refused, run, until

ADD = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32> }"
VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}  # 8 bytes
TOKENS = "ann one\nann look reader\nbob two\nroot all admin\n"


def at_once(count, ask):
    """The answers to `count` requests that are made together."""
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        return list(threads.map(ask, range(count)))


def statuses(answers):
    return sorted(answer[0] for answer in answers)


def test_waiting_jobs_are_counted_for_each_principal():
    with Shared(TOKENS, "--principal-jobs", "3") as shared:
        spin = {"program": {"text": SPIN}, "arguments": [2_000_000_000]}
        jobs = [shared.ask("one", "POST", "/v1/run", spin, {"Prefer": "respond-async"}) for _ in range(20)]
        full = [each for each in jobs if each[0] != 202]
        assert full and "at most 3 may" in refused(full[-1], 429, "queue_full"), full
        assert full[-1][1]["RateLimit"].startswith('"jobs";r=0'), full[-1][1]["RateLimit"]
        assert ok(shared.ask("one", "GET", "/v1/me"))["usage"]["waiting_jobs"] == 3
        small = {"program": {"text": ADD}, "arguments": [[1, 2]]}
        ok(shared.ask("two", "POST", "/v1/run", small, {"Prefer": "wait=30"}))  # others have places, and are served
        for each in jobs:
            if each[0] == 202:
                ok(shared.ask("one", "DELETE", f"/v1/jobs/{each[2]['id']}"), 202)
        until(lambda: ok(shared.ask("one", "GET", "/v1/me"))["usage"]["waiting_jobs"] == 0, "the jobs that waited are gone")
        ok(shared.ask("one", "POST", "/v1/run", small, {"Prefer": "wait=30"}))


def test_counts_are_exact_when_many_ask_at_once():
    limits = ("--principal-arrays", "5", "--principal-sessions", "4", "--principal-programs", "3", "--principal-meshes", "2")
    with Shared(TOKENS, *limits) as shared:
        arrays = at_once(16, lambda i: shared.ask("one", "POST", "/v1/arrays", VALUE))
        assert statuses(arrays) == [201] * 5 + [429] * 11, statuses(arrays)
        sessions = at_once(16, lambda i: shared.ask("one", "POST", "/v1/sessions"))
        assert statuses(sessions) == [201] * 4 + [429] * 12, statuses(sessions)
        programs = at_once(16, lambda i: shared.ask("one", "POST", "/v1/programs", {"text": ADD + f" // {i}"}))
        assert statuses(programs) == [201] * 3 + [429] * 13, statuses(programs)
        meshes = at_once(16, lambda i: shared.ask("one", "POST", "/v1/meshes", {"axes": [{"name": f"x{i}", "size": 4}]}))
        assert statuses(meshes) == [201] * 2 + [429] * 14, statuses(meshes)
        for answers, what in ((arrays, "arrays, at most 5"), (sessions, "sessions, at most 4"), (programs, "programs, at most 3"),
                              (meshes, "meshes, at most 2")):
            for answer in answers:
                assert answer[0] == 201 or what in refused(answer, 429, "limit_reached"), answer
        # What is there already may be posted again, and others have limits of their own.
        assert any(shared.ask("one", "POST", "/v1/programs", {"text": ADD + f" // {i}"})[0] == 200 for i in range(16))
        ok(shared.ask("two", "POST", "/v1/arrays", VALUE), 201)
        # Deleting makes room, once.
        array = next(answer[2]["id"] for answer in arrays if answer[0] == 201)
        gone = at_once(4, lambda i: shared.ask("one", "DELETE", f"/v1/arrays/{array}"))
        assert statuses(gone) == [204, 404, 404, 404], statuses(gone)
        again = at_once(4, lambda i: shared.ask("one", "POST", "/v1/arrays", VALUE))
        assert statuses(again) == [201, 429, 429, 429], statuses(again)
        session = next(answer[2]["id"] for answer in sessions if answer[0] == 201)
        ok(shared.ask("one", "DELETE", f"/v1/sessions/{session}"), 204)
        ok(shared.ask("one", "POST", "/v1/sessions"), 201)


def test_bytes_of_new_data_count_while_they_come():
    mib = 1 << 20
    size = 8 * mib
    with Shared(TOKENS, "--principal-bytes", str(20 * mib)) as shared:
        made = ok(shared.ask("one", "POST", f"/v1/arrays?dtype=uint8&shape={size}", b"a" * size, {"Content-Type": "application/octet-stream"}), 201)
        used = lambda: ok(shared.ask("one", "GET", "/v1/me"))["usage"]["array_bytes"]  # noqa: E731
        target = f"/v1/arrays/{made['id']}/data"

        def put(query=""):
            # The head and a part of the body.
            client = socket.create_connection(("127.0.0.1", shared.server.port), timeout=30)
            length = size // 2 if query else size
            client.sendall(f"PUT {target}{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\nContent-Length: {length}\r\n"
                           "Content-Type: application/octet-stream\r\n\r\n".encode() + b"b" * mib)
            return client

        for query in ("", "?slice=0:4194304"):
            running = put(query)
            until(lambda: used() > size, "what comes is counted")
            others = [put() for _ in range(4)]
            answers = []
            for other in others:
                other.settimeout(10)
                try:
                    answers.append(other.recv(4096).split(b"\r\n")[0])
                except socket.timeout:
                    answers.append(b"runs")
            # Beside the slice one more fits.
            assert sum(b" 413 " in answer for answer in answers) >= 3, (query, answers)
            assert used() <= 20 * mib
            for client in (running, *others):
                client.close()
            until(lambda: used() == size, "what was cut off is given back")
        ok(shared.ask("one", "PUT", target, b"c" * size, {"Content-Type": "application/octet-stream"}))
        assert used() == size
        assert shared.ask("one", "GET", target)[2] == b"c" * size


def test_bytes_are_counted_over_restarts_deletes_and_donation():
    with Shared(TOKENS, "--principal-bytes", "40") as shared:
        made = [ok(shared.ask("one", "POST", "/v1/arrays", VALUE), 201)["id"] for _ in range(4)]
        big = {"dtype": "float32", "shape": [3], "data": [1, 2, 3]}
        said = refused(shared.ask("one", "POST", "/v1/arrays", big), 413, "quota_exceeded")
        assert "12 bytes" in said and "32 bytes" in said and "at most 40" in said, said
        shared.server.stop()
        shared.server.start()
        me = ok(shared.ask("look", "GET", "/v1/me"))
        assert (me["principal"], me["role"], me["usage"]["array_bytes"], me["usage"]["arrays"]) == ("ann", "reader", 32, 4), me
        assert me["limits"]["array_bytes"] == 40 and me["limits"]["requests_per_second"] is None, me
        refused(shared.ask("one", "POST", "/v1/arrays", big), 413, "quota_exceeded")
        ok(shared.ask("one", "DELETE", f"/v1/arrays/{made[0]}"), 204)
        ok(shared.ask("one", "POST", "/v1/arrays", big), 201)
        # 36 of 40. A move keeps what it has; a job that donates and stores has both for a moment, and then one.
        moved = ok(shared.ask("one", "POST", f"/v1/arrays/{made[1]}:move"), 201)["id"]
        donating = {"program": {"text": ADD}, "arguments": [{"array": moved}], "donate": [0], "results": {"encoding": "array"}}
        refused(shared.ask("one", "POST", "/v1/run", donating), 413, "quota_exceeded")
        # The run wrote over the memory of what it donated; the data is what it was.
        assert ok(shared.ask("one", "GET", f"/v1/arrays/{moved}/data?format=json"))["data"] == [1, 2]
        ok(shared.ask("one", "DELETE", f"/v1/arrays/{made[2]}"), 204)
        for _ in range(5):
            answer = ok(shared.ask("one", "POST", "/v1/run", donating))
            donating["arguments"] = [{"array": answer["results"][0]["array"]}]
        assert ok(shared.ask("one", "GET", "/v1/me"))["usage"]["array_bytes"] == 28
        # An upload that does not arrive holds nothing.
        for _ in range(5):
            refused(shared.ask("one", "POST", "/v1/arrays?dtype=float32&shape=2", b"abc", {"Content-Type": "application/octet-stream"}),
                    400, "malformed_body")
        assert ok(shared.ask("one", "GET", "/v1/me"))["usage"]["array_bytes"] == 28


def test_requests_a_second_are_limited_for_each_principal():
    with Shared(TOKENS, "--requests-per-second", "20") as shared:
        answers = at_once(16, lambda i: [shared.ask("one", "GET", "/v1/info") for _ in range(10)])
        answers = [each for some in answers for each in some]
        limited = [each for each in answers if each[0] != 200]
        assert limited, "160 requests were answered"
        assert "20 requests a second" in refused(limited[0], 429, "too_many_requests")
        assert limited[0][1]["Retry-After"] == "1"
        for each in answers:
            assert each[1]["RateLimit-Policy"] == '"requests";q=20;w=1' and each[1]["RateLimit"].startswith('"requests";r='), each[1].items()
        assert ok(shared.ask("two", "GET", "/v1/me"))["limits"]["requests_per_second"] == 20
        assert shared.server.ask("GET", "/livez")[0] == 200
        until(lambda: shared.ask("one", "GET", "/v1/info")[0] == 200, "the bucket fills again")
        both = until(lambda: (a := shared.ask("one", "POST", "/v1/run", {"program": {"text": ADD}, "arguments": [[1, 2]]},
                                              {"Prefer": "respond-async"})) [0] == 202 and a, "a job is taken")
        assert '"jobs";q=' in both[1]["RateLimit-Policy"] and '"requests";q=20' in both[1]["RateLimit-Policy"], both[1].items()


def test_admins_see_all_and_read_the_tokens_again():
    with Shared(TOKENS) as shared:
        ok(shared.ask("one", "POST", "/v1/arrays", VALUE), 201)
        refused(shared.ask("one", "GET", "/v1/principals"), 403, "forbidden")
        refused(shared.ask("one", "POST", "/v1/tokens:reload"), 403, "forbidden")
        items = ok(shared.ask("all", "GET", "/v1/principals"))["items"]
        assert [(each["principal"], each["usage"]["arrays"]) for each in items] == [("ann", 1), ("bob", 0), ("root", 0)], items
        first = ok(shared.ask("all", "GET", "/v1/principals?limit=2"))
        rest = ok(shared.ask("all", "GET", f"/v1/principals?limit=2&cursor={first['next']}"))
        assert [each["principal"] for each in first["items"] + rest["items"]] == ["ann", "bob", "root"] and rest["next"] is None
        shared.write("ann three\nroot all admin\n")
        assert ok(shared.ask("all", "POST", "/v1/tokens:reload")) == {"tokens": 2}
        refused(shared.ask("one", "GET", "/v1/me"), 401, "unauthorized")
        assert ok(shared.ask("three", "GET", "/v1/me"))["usage"]["arrays"] == 1
        shared.write("ann three owner\n")
        assert "line 1 " in refused(shared.ask("all", "POST", "/v1/tokens:reload"), 422, "invalid_request")
        told = until(lambda: [each["status"] for each in shared.events("audit") if each["principal"] == "root"][-2:] == [200, 422], "both are told")
        assert told


def tokens(*arguments, stdin=""):
    done = subprocess.run([BINARY, "tokens", *arguments], input=stdin, capture_output=True, text=True, timeout=DEADLINE)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_data_of_a_token_is_adopted_by_a_name():
    with Shared("secret\n") as shared:
        data = shared.folder.name + "/data"
        array = ok(shared.ask("secret", "POST", "/v1/arrays", VALUE), 201)["id"]
        session = ok(shared.ask("secret", "POST", "/v1/sessions"), 201)["id"]
        program = ok(shared.ask("secret", "POST", "/v1/programs", {"text": ADD}), 201)["id"]
        body = {"program": {"id": program}, "arguments": [{"array": array}]}
        ok(shared.ask("secret", "POST", f"/v1/sessions/{session}/jobs", body, {"Idempotency-Key": "k"}))
        code, _, said = tokens("adopt", "--data", data, "ann", "secret")
        assert code == 1 and "in use by another meshd" in said, said
        shared.server.stop()
        code, hashed, _ = tokens("hash", stdin="new\n")
        assert code == 0 and hashed.startswith("sha256:"), hashed
        for wrong in (("tok_1", "secret"), ("a b", "secret"), ("ann", "other"), ("anonymous", "secret")):
            assert tokens("adopt", "--data", data, *wrong)[0] == 1, wrong
        code, said, _ = tokens("adopt", "--data", data, "ann", "-", stdin="secret\n")
        assert code == 0 and "1 arrays, 1 sessions, 1 jobs, 1 programs" in said, said
        assert tokens("adopt", "--data", data, "ann", "-", stdin="secret\n")[0] == 1
        assert tokens("adopt", "--data", data + "/nowhere", "ann", "secret")[0] == 1 and not pathlib.Path(data + "/nowhere").exists()
        shared.write(f"ann {hashed}\nsecret\n")
        shared.server.start()
        refused(shared.ask("secret", "GET", f"/v1/arrays/{array}"), 404, "not_found")
        assert ok(shared.ask("new", "GET", f"/v1/arrays/{array}"))["id"] == array
        assert ok(shared.ask("new", "GET", f"/v1/sessions/{session}/jobs"))["items"][0]["state"] == "done"
        assert ok(shared.ask("new", "GET", f"/v1/programs/{program}"))["id"] == program
        again = shared.ask("new", "POST", f"/v1/sessions/{session}/jobs", body, {"Idempotency-Key": "k"})
        assert again[0] == 200 and again[1]["Idempotency-Replayed"] == "true", again
        assert ok(shared.ask("new", "GET", "/v1/me"))["usage"]["array_bytes"] == 8


sys.exit(run(dict(globals())))
