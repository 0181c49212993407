"""Who may do what: names and roles of tokens, tokens that change while the server runs, what the log keeps of admins."""
import http.client
import signal
import sys

from server import Meshd
from shared_server import BINARY, DEADLINE, Shared, bearer, ok, refused, run, until

ADD = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32> }"
VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}


def test_name_owns_its_data_over_tokens():
    with Shared("ann one\n") as shared:
        array = ok(shared.ask("one", "POST", "/v1/arrays", VALUE), 201)["id"]
        session = ok(shared.ask("one", "POST", "/v1/sessions"), 201)["id"]
        stream = http.client.HTTPConnection("127.0.0.1", shared.server.port, timeout=DEADLINE)
        stream.request("GET", f"/v1/sessions/{session}/events", headers=bearer("one"))
        events = stream.getresponse()
        kept = http.client.HTTPConnection("127.0.0.1", shared.server.port, timeout=DEADLINE)
        kept.request("GET", "/v1/info", headers=bearer("one"))
        assert kept.getresponse().read()
        socket_before = kept.sock

        shared.write("ann two\nann three reader\nbob other\n")
        assert shared.reload()["outcome"] == "ok"
        refused(shared.ask("one", "GET", f"/v1/arrays/{array}"), 401, "unauthorized")
        for token in ("two", "three"):
            assert ok(shared.ask(token, "GET", f"/v1/arrays/{array}"))["id"] == array
        refused(shared.ask("other", "GET", f"/v1/arrays/{array}"), 404, "not_found")
        # What was open goes on: the connection, and the stream, which a job of the new token reaches.
        kept.request("GET", "/v1/info", headers=bearer("two"))
        assert kept.getresponse().read() and kept.sock is socket_before
        text = ('module { func.func @main(%t: !stablehlo.token, %a: tensor<2xf32>) -> !stablehlo.token { %0 = "stablehlo.outfeed"(%a, %t) '
                '<{outfeed_config = "q"}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token return %0 : !stablehlo.token } }')
        ok(shared.ask("two", "POST", f"/v1/sessions/{session}/jobs", {"program": {"text": text}, "arguments": [[1, 2]]}))
        line = b""
        while not line.startswith(b"data:"):
            line = events.readline()
            assert line, "the stream ended"
        stream.close()
        kept.close()


def test_file_that_is_broken_keeps_the_tokens():
    with Shared("ann one\n") as shared:
        for broken in ("ann two\nann three owner\n", "", "ann two extra words here\n"):
            shared.write(broken)
            said = shared.reload()
            assert said["outcome"] == "failed", said
            assert ok(shared.ask("one", "GET", "/v1/info"))
            refused(shared.ask("two", "GET", "/v1/info"), 401, "unauthorized")
        reasons = [each["reason"] for each in shared.events("tokens_not_reloaded")]
        assert "line 2 " in reasons[0] and "no token" in reasons[1] and "line 1 " in reasons[2], reasons
        assert "three" not in "".join(reasons)
        shared.tokens.unlink()
        assert shared.reload()["outcome"] == "failed"
        assert ok(shared.ask("one", "GET", "/v1/info"))


def test_hangup_without_tokens_ends_nothing():
    with Meshd(BINARY) as server:
        for _ in range(30):
            server.process.send_signal(signal.SIGHUP)
            server.process.send_signal(signal.SIGHUP)
            assert ok(server.ask("GET", "/v1/info"))
        assert server.stop() == 0


def test_roles_are_held():
    with Shared("ann write\nann look reader\nroot all admin\n") as shared:
        array = ok(shared.ask("write", "POST", "/v1/arrays", VALUE), 201)["id"]
        program = ok(shared.ask("write", "POST", "/v1/programs", {"text": ADD}), 201)["id"]
        assert len(ok(shared.ask("look", "GET", "/v1/arrays"))["items"]) == 1
        assert ok(shared.ask("look", "POST", f"/v1/programs/{program}:explain", {}))
        assert ok(shared.ask("look", "POST", f"/v1/arrays/{array}:compare", {"array": array, "mode": "bits"}))
        for method, path, body in (("POST", "/v1/arrays", VALUE), ("DELETE", f"/v1/arrays/{array}", None),
                                   ("POST", "/v1/run", {"program": {"text": ADD}, "arguments": [[1, 2]]}),
                                   ("PUT", f"/v1/arrays/{array}/data", VALUE), ("POST", "/v1/sessions", None)):
            said = refused(shared.ask("look", method, path, body), 403, "forbidden")
            assert "role user" in said and "role reader" in said, said
        assert ok(shared.ask("write", "GET", f"/v1/arrays/{array}"))["version"] == 1


def test_changes_by_admins_are_in_the_log():
    with Shared("ann write\nroot all admin\n") as shared:
        ok(shared.ask("write", "POST", "/v1/arrays", VALUE), 201)
        made = ok(shared.ask("all", "POST", "/v1/arrays", VALUE, {"X-Request-Id": "made"}), 201)["id"]
        ok(shared.ask("all", "GET", f"/v1/arrays/{made}"))
        ok(shared.ask("all", "DELETE", f"/v1/arrays/{made}"), 204)
        refused(shared.ask("all", "DELETE", f"/v1/arrays/{made}"), 404, "not_found")
        lines = until(lambda: (found := shared.events("audit")) if len(shared.events("audit")) >= 3 else None, "three lines")
        told = [(each["principal"], each["operation"], each["target"], each["status"]) for each in lines]
        at = f"/v1/arrays/{made}"
        assert told == [("root", "createArray", "/v1/arrays", 201), ("root", "deleteArray", at, 204),
                        ("root", "deleteArray", at, 404)], told
        assert lines[0]["request_id"] == "made"


def test_program_is_shared_but_not_its_name():
    with Shared("ann one\nbob two\n") as shared:
        mine = ok(shared.ask("one", "POST", "/v1/programs", {"text": ADD, "name": "secret project", "doc": "for the merger"}), 201)
        refused(shared.ask("two", "GET", f"/v1/programs/{mine['id']}"), 404, "not_found")
        theirs = ok(shared.ask("two", "POST", "/v1/programs", {"text": ADD, "doc": "doubles"}), 201)
        assert theirs["id"] == mine["id"] and theirs["doc"] == "doubles" and theirs["created"] != mine["created"], theirs
        for path in (f"/v1/programs/{mine['id']}", "/v1/programs"):
            assert "secret" not in str(shared.ask("two", "GET", path)[2]) + str(theirs)
        again = ok(shared.ask("two", "POST", "/v1/programs", {"text": ADD, "name": "later", "doc": "later"}))
        assert again == theirs
        assert ok(shared.ask("one", "GET", f"/v1/programs/{mine['id']}"))["name"] == "secret project"


sys.exit(run(dict(globals())))
