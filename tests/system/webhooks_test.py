"""Webhooks of a session: effects and ends of jobs reach a receiver, signed, in order and at least once: when it fails, when it is slow, when
the server is killed; and nothing reaches addresses that nobody allowed. webhooks_test.py BINARY"""
import base64
import hashlib
import hmac
import http.server
import json
import signal
import sys
import threading
import time

from server import Meshd, logging, ok, refused, run_stories, until


class Receiver:
    """Keeps what is posted to it, verified, and answers as `answers` says: a status each, then 204."""

    def __init__(self, answers=()):
        self.answers, self.posts, self.secret, self.lock = list(answers), [], None, threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    status = receiver.answers.pop(0) if receiver.answers else 204
                    receiver.posts.append((status, self.headers, body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def taken(self, every=False):
        """(id, document) of each post that was accepted (or of every one), in order; all signatures are right."""
        with self.lock:
            posts = list(self.posts)
        out = []
        for status, fields, body in posts:
            key = base64.b64decode(self.secret.removeprefix("whsec_"))
            text = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
            expected = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
            assert fields["webhook-signature"] == expected, "the signature is wrong"
            assert abs(time.time() - int(fields["webhook-timestamp"])) < 300
            if every or status == 204:
                out.append((fields["webhook-id"], json.loads(body)))
        return out

    def effects(self):
        """Numbers of the effects that were accepted, in the order in which they came."""
        return [effect["sequence"] for _, document in self.taken() if document["type"] == "effects" for effect in document["effects"]]

    def jobs(self):
        return [(document["number"], document["job"]["state"]) for _, document in self.taken() if document["type"] == "job"]


def session_of(server):
    return ok(server.ask("POST", "/v1/sessions"), 201)["id"]


def hook(server, session, receiver, **fields):
    made = ok(server.ask("POST", "/v1/webhooks", {"session": session, "url": receiver.url, **fields}), 201)
    receiver.secret = made["secret"]
    return made


def log(server, session, number):
    ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logging(number)))


def everything_arrives_in_order(server):
    session = session_of(server)
    with Receiver() as receiver:
        log(server, session, 0)
        made = hook(server, session, receiver)
        assert made["sequence"] == 1 and made["job_number"] == 1, "from now on"
        for number in range(1, 8):
            log(server, session, number)
        until(lambda: len(receiver.jobs()) == 7, "the ends of seven jobs")
        assert receiver.effects() == list(range(2, 9)), receiver.effects()
        assert receiver.jobs() == [(number, "done") for number in range(2, 9)], receiver.jobs()
        seen = set()  # the effects of a job come before its end
        for _, document in receiver.taken():
            if document["type"] == "effects":
                seen |= {effect["job"] for effect in document["effects"]}
                assert document["first"] == document["effects"][0]["sequence"] and document["last"] == document["effects"][-1]["sequence"]
            else:
                assert document["job"]["id"] in seen
        values = [effect["values"][0]["data"] for _, document in receiver.taken() if document["type"] == "effects" for effect in document["effects"]]
        assert values == list(range(1, 8)), values
        shown = until(lambda: (lambda now: now if now["job_number"] == 8 else None)(ok(server.ask("GET", f"/v1/webhooks/{made['id']}"))), "the last answer is committed")
        assert (shown["sequence"], shown["failures"], "secret" in shown) == (8, 0, False), shown


def failed_and_cancelled_jobs_end_too(server):
    session = session_of(server)
    with Receiver() as receiver:
        hook(server, session, receiver, events=["jobs"])
        program = {"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"}}
        queued = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {**program, "arguments": [{"array": "arr_" + "0" * 8}]}), 404)
        assert queued["code"] == "not_found", "what is not accepted has no end"
        budget = {"program": {"format": "numpy", "text": "def f(x):\n  for i in range(100000000):\n    x = jnp.cos(x)\n  return x"}, "arguments": [1.0]}
        job = ok(server.ask("POST", f"/v1/sessions/{session}/jobs", {**budget, "arguments": [1.0]}, {"Prefer": "respond-async"}), 202)["id"]
        ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
        failing = server.ask("POST", f"/v1/sessions/{session}/jobs", {**budget, "deadline": 0.05})
        assert failing[0] in (408, 422, 503, 504, 409), failing
        until(lambda: len(receiver.jobs()) == 2, "two ends")
        assert receiver.jobs() == [(1, "cancelled"), (2, "failed")], receiver.jobs()


def a_delivery_that_fails_comes_again_as_it_was(server):
    session = session_of(server)
    with Receiver([500, 301, 429]) as receiver:
        made = hook(server, session, receiver, events=["effects"])
        log(server, session, 1)
        until(lambda: ok(server.ask("GET", f"/v1/webhooks/{made['id']}"))["failures"] > 0, "a failure")
        log(server, session, 2)  # does not change what is under way
        until(lambda: receiver.effects() == [1, 2], "both effects", 60)
        posts = receiver.taken(every=True)
        assert len(posts) == 5 and all(post == posts[0] for post in posts[:4]), posts
        assert posts[4][0] != posts[0][0]
        shown = until(lambda: (lambda now: now if now["sequence"] == 2 else None)(ok(server.ask("GET", f"/v1/webhooks/{made['id']}"))), "the acceptance is committed")
        assert "last_error" not in shown and "failing_since" not in shown, shown


def a_receiver_that_is_gone_disables_its_webhook(server):
    session = session_of(server)
    with Receiver([410]) as receiver:
        made = hook(server, session, receiver, events=["effects"])
        log(server, session, 1)
        shown = until(lambda: (lambda now: now if now["state"] == "disabled" else None)(ok(server.ask("GET", f"/v1/webhooks/{made['id']}"))), "disabled")
        assert "410" in shown["last_error"]
        log(server, session, 2)
        assert len(receiver.posts) == 1
        assert ok(server.ask("POST", f"/v1/webhooks/{made['id']}:resume"))["state"] == "active"
        until(lambda: receiver.effects() == [1, 2], "what was missed")


def nothing_is_sent_where_nobody_allowed_it(server):
    session = session_of(server)
    for url in ("http://127.0.0.2:1/", "http://10.1.2.3/", "http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://2130706434/"):
        wrong = server.ask("POST", "/v1/webhooks", {"session": session, "url": url})
        assert wrong[0] == 422 and wrong[2]["errors"][0]["pointer"] == "/url", (url, wrong)
    with Receiver() as receiver:
        port = receiver.url.split(":")[2].split("/")[0]
        made = ok(server.ask("POST", "/v1/webhooks", {"session": session, "url": f"http://localhost:{port}/"}), 201)
        receiver.secret = made["secret"]
        log(server, session, 1)
        # localhost is 127.0.0.1, which the server's operator has allowed, or ::1, which they have not.
        until(lambda: receiver.posts or ok(server.ask("GET", f"/v1/webhooks/{made['id']}")).get("last_error"), "an attempt")
        ok(server.ask("DELETE", f"/v1/webhooks/{made['id']}"), 204)


def mistakes_are_said(server):
    session = session_of(server)
    url = "https://hooks.invalid/"
    wrong = server.ask("POST", "/v1/webhooks", {"session": session, "url": "ftp://example.org", "secret": "mine", "events": []})
    assert wrong[0] == 422 and [entry["pointer"] for entry in wrong[2]["errors"]] == ["/url", "/secret", "/events"], wrong
    wrong = server.ask("POST", "/v1/webhooks", {"session": session, "url": url, "after": 7})
    assert wrong[0] == 422 and wrong[2]["errors"][0]["pointer"] == "/after", wrong
    assert server.ask("POST", "/v1/webhooks", {"session": session, "url": url, "events": ["nothing"]})[0] == 422
    refused(server.ask("POST", "/v1/webhooks", {"session": "ses_" + "0" * 36, "url": url}), 404, "not_found")
    refused(server.ask("GET", "/v1/webhooks/whk_" + "0" * 36), 404, "not_found")
    made = ok(server.ask("POST", "/v1/webhooks", {"session": session, "url": url}, {"Idempotency-Key": "once"}), 201)
    assert ok(server.ask("POST", "/v1/webhooks", {"session": session, "url": url}, {"Idempotency-Key": "once"}), 201) == made
    assert [row["id"] for row in ok(server.ask("GET", f"/v1/webhooks?session={session}"))["items"]] == [made["id"]]
    assert server.ask("GET", "/v1/webhooks?session=ses_00000000-0000-7000-8000-000000000000")[0] == 404
    stranger = {"Authorization": "Bearer another"}
    refused(server.ask("GET", f"/v1/webhooks/{made['id']}", headers=stranger), 404, "not_found")
    refused(server.ask("DELETE", f"/v1/webhooks/{made['id']}", headers=stranger), 404, "not_found")
    refused(server.ask("POST", f"/v1/webhooks/{made['id']}:resume", headers=stranger), 404, "not_found")
    refused(server.ask("POST", "/v1/webhooks", {"session": session, "url": url}, stranger), 404, "not_found")
    assert ok(server.ask("GET", "/v1/webhooks", headers=stranger))["items"] == []
    ok(server.ask("DELETE", f"/v1/sessions/{session}"), 204)
    refused(server.ask("GET", f"/v1/webhooks/{made['id']}"), 404, "not_found")


def nothing_is_lost_when_the_server_is_killed(_):
    with Meshd(sys.argv[1], "--webhook-network", "127.0.0.0/8") as server, Receiver() as receiver:
        session = session_of(server)
        hook(server, session, receiver, after=0)
        sent = 0
        for _ in range(4):
            for _ in range(15):
                sent += 1
                log(server, session, sent)
            server.stop(signal.SIGKILL)
            server.start()
        until(lambda: len(receiver.jobs()) >= sent and set(receiver.effects()) >= set(range(1, sent + 1)), "everything")
        first = {}
        for name, document in receiver.taken(every=True):
            assert first.setdefault(name, document) == document, "a repetition is what it was"
        in_order = [document for document in first.values() if document["type"] == "effects"]
        assert [effect["sequence"] for document in in_order for effect in document["effects"]] == list(range(1, sent + 1))
        ends = [document["number"] for document in first.values() if document["type"] == "job"]
        assert ends == list(range(1, sent + 1)), ends


STORIES = [everything_arrives_in_order, failed_and_cancelled_jobs_end_too, a_delivery_that_fails_comes_again_as_it_was,
           a_receiver_that_is_gone_disables_its_webhook, nothing_is_sent_where_nobody_allowed_it, mistakes_are_said,
           nothing_is_lost_when_the_server_is_killed]

if __name__ == "__main__":
    sys.exit(run_stories(STORIES, options=("--webhook-network", "127.0.0.1/32")))
