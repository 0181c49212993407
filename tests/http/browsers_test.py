"""What web pages of other sites can do to a server: nothing. browsers_test.py BINARY [ROW].

Each row is what a browser sends for a page of another site (or for one whose name was made to resolve to the server), field by field,
and what the server makes of it. The server has an array, a session and a job; after every attack they are what they were. The second
half is the same with an origin that the operator named."""
import http.client
import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd

EVIL = "https://evil.example"
APP = "https://app.example"
APP_AT_WORK = "http://localhost:4173"  # as developers serve it
VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}
RUN = {"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"}, "arguments": [[1, 2]]}
# What Chromium adds to a fetch, an image, a form and a followed link of another site.
FETCH = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
IMAGE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
FORM = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
JSON = {"Content-Type": "application/json"}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


class Browser:
    def __init__(self, server):
        self.server, self.port = server, server.port
        self.array = server.ask("POST", "/v1/arrays", VALUE)[2]["id"]
        self.session = server.ask("POST", "/v1/sessions", {"name": "mine"})[2]["id"]

    def ask(self, method, target, headers=None, body=None, host=None):
        """(status, headers, document or bytes) of a request with exactly these fields."""
        body = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            # Of an event stream the head is enough.
            stream = answer.getheader("Content-Type", "").startswith("text/event-stream")
            data = b"" if stream else answer.read()
            return answer.status, answer.headers, json.loads(data) if "json" in answer.getheader("Content-Type", "") and data else data
        finally:
            connection.close()

    def raw(self, text):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as wire:
            wire.sendall(text.encode())
            out = b""
            while piece := wire.recv(65536):
                out += piece
        return int(out.split(b" ", 2)[1]), out

    def refused(self, code, *request, status=403, **more):
        found, headers, problem = self.ask(*request, **more)
        assert found == status and problem["code"] == code and problem["detail"], (request, more, found, problem)
        # Nothing lets the page read even the refusal.
        assert headers["Access-Control-Allow-Origin"] is None, headers
        return problem

    def unchanged(self):
        names = [each["id"] for each in self.server.ask("GET", "/v1/arrays")[2]["items"]]
        sessions = [each["id"] for each in self.server.ask("GET", "/v1/sessions")[2]["items"]]
        assert names == [self.array] and sessions == [self.session], (names, sessions)
        assert self.server.ask("GET", "/v1/jobs")[2]["items"] == []
        assert self.server.ask("GET", f"/v1/sessions/{self.session}/effects")[2]["items"] == []


def form_post(b):
    b.refused("cross_site", "POST", "/v1/sessions", {"Origin": EVIL, **FORM, **FORM_TYPE}, b'{"name": "x", "ignored=": 1}')
    b.refused("cross_site", "POST", f"/v1/arrays/{b.array}:delete", {"Origin": EVIL, **FORM, **FORM_TYPE}, b"")


def form_post_of_a_browser_without_fetch_metadata(b):
    b.refused("cross_site", "POST", f"/v1/arrays/{b.array}:delete", {"Origin": EVIL, **FORM_TYPE}, b"a=b")


def multipart_form(b):
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.npy"\r\n\r\nabcdefgh\r\n--x--\r\n'
    b.refused("cross_site", "POST", "/v1/arrays?dtype=uint8&shape=8",
              {"Origin": EVIL, **FORM, "Content-Type": "multipart/form-data; boundary=x"}, body)


def simple_fetch_with_plain_text(b):
    b.refused("cross_site", "POST", "/v1/run", {"Origin": EVIL, **FETCH, "Content-Type": "text/plain;charset=UTF-8"}, RUN)
    b.refused("cross_site", "POST", "/v1/programs", {"Origin": EVIL, **FETCH, "Content-Type": "text/plain"}, RUN["program"]["text"].encode())


def beacon(b):
    fields = {**FETCH, "Sec-Fetch-Mode": "no-cors", "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8"}
    b.refused("cross_site", "POST", f"/v1/sessions/{b.session}/jobs", {"Origin": EVIL, **fields}, RUN)


def forms_and_text_are_not_json_even_without_origin(b):
    # What slips through browsers that say nothing of the page: still none of the types that need no preflight is read as JSON.
    form = (b"--x\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n" + json.dumps(RUN).encode() + b"\r\n--x--\r\n")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; application/json"):
        for target in ("/v1/run", "/v1/sessions", f"/v1/sessions/{b.session}/jobs", "/v1/meshes", f"/v1/sessions/{b.session}/barrier"):
            body = form if "multipart" in kind else RUN
            problem = b.refused("unsupported_media_type", "POST", target, {"Content-Type": kind}, body, status=415)
            assert "-H 'Content-Type: application/json'" in problem["detail"], problem


def sandboxed_frame(b):
    b.refused("cross_site", "POST", f"/v1/arrays/{b.array}:delete", {"Origin": "null", **FETCH})


def local_file(b):
    b.refused("cross_site", "DELETE", f"/v1/arrays/{b.array}", {"Origin": "null"})
    b.refused("cross_site", "DELETE", f"/v1/arrays/{b.array}", {"Origin": "file://"})


def other_port_of_localhost(b):
    fields = {**FETCH, "Sec-Fetch-Site": "same-site"}
    for origin in ("http://127.0.0.1:3000", "http://127.0.0.1", "http://localhost:3000"):
        b.refused("cross_site", "POST", "/v1/sessions", {"Origin": origin, **fields, **JSON}, {})
        b.refused("cross_site", "POST", "/v1/sessions", {"Origin": origin, **JSON}, {})


def other_name_of_this_machine(b):
    b.refused("cross_site", "POST", "/v1/sessions", {"Origin": f"http://localhost:{b.port}", **JSON}, {})
    b.refused("cross_site", "POST", "/v1/sessions", {"Origin": f"http://[::1]:{b.port}", **JSON}, {})


def other_scheme(b):
    b.refused("cross_site", "POST", "/v1/sessions", {"Origin": f"https://127.0.0.1:{b.port}", **JSON}, {})


def origins_that_look_like_ours(b):
    for origin in (f"http://127.0.0.1:{b.port}.evil.example", f"http://127.0.0.1:{b.port}@evil.example", f"http://127.0.0.1.evil.example:{b.port}",
                   f"http://127.0.0.1:{b.port}/", f"http://evil.example?http://127.0.0.1:{b.port}", f"http://127.0.0.1:{b.port} {EVIL}",
                   f"http://2130706433:{b.port}", f"http://127.1:{b.port}"):
        b.refused("cross_site", "POST", "/v1/sessions", {"Origin": origin, **JSON}, {})


def two_origins(b):
    status, answer = b.raw(f"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:{b.port}\r\nOrigin: {EVIL}\r\nOrigin: http://127.0.0.1:{b.port}\r\n"
                           "Content-Length: 0\r\nConnection: close\r\n\r\n")
    assert status == 403 and b'"cross_site"' in answer, answer


def rebinding(b):
    # The page is of evil.example, and so is the server: in the browser's eyes all is of one origin.
    own = {"Origin": f"http://evil.example:{b.port}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    for host in (f"evil.example:{b.port}", "evil.example", "evil.example.", "EVIL.example:80"):
        b.refused("host_not_allowed", "GET", "/v1/arrays", own, host=host)
        b.refused("host_not_allowed", "DELETE", f"/v1/arrays/{b.array}", own, host=host)
        b.refused("host_not_allowed", "GET", "/docs", host=host)
        b.refused("host_not_allowed", "GET", "/v1/nothing", host=host)


def names_that_look_like_loopback(b):
    for host in ("localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "xlocalhost", "localhost-evil.example", "1.0.0.127",
                 "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "[::]", "[::2]", "[fe80::1]", "169.254.169.254", "10.0.0.1"):
        b.refused("host_not_allowed", "GET", "/v1/info", host=f"{host}:{b.port}")


def names_of_loopback_are_all_right(b):
    for host in ("localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"):
        for port in ("", ":", ":1", f":{b.port}"):
            assert b.ask("GET", "/v1/info", host=host + port)[0] == 200, host + port


def hosts_that_are_none(b):
    at = f"127.0.0.1:{b.port}"
    for fields in (f"Host: user@{at}", f"Host: {at}@evil.example", f"Host: {at}\r\nHost: {at}", f"Host: {at}\r\nhost: evil.example", "Host: a b",
                   f"Host: {at}/", f"Host: {at}, evil.example"):
        status, answer = b.raw(f"GET /v1/arrays HTTP/1.1\r\n{fields}\r\nConnection: close\r\n\r\n")
        assert status == 400 and b.array.encode() not in answer, (fields, answer)


def absolute_targets(b):
    for target, host, want in (("http://evil.example/v1/arrays", "evil.example", 403), (f"http://127.0.0.1:{b.port}/v1/arrays", "evil.example", 400),
                               ("http://evil.example/v1/arrays", f"127.0.0.1:{b.port}", 400), ("http://localhost/v1/arrays", "localhost", 200)):
        status, answer = b.raw(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        assert status == want, (target, host, answer)
    assert b.raw("GET http://evil.example/v1/arrays HTTP/1.0\r\n\r\n")[0] == 403
    # No browser speaks HTTP/1.0; old balancers and scripts do, and name no host.
    assert b.raw("GET /v1/info HTTP/1.0\r\n\r\n")[0] == 200


def forwarded_hosts_count_for_nothing(b):
    for name in ("X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host", "X-Forwarded-Server"):
        value = "host=localhost" if name == "Forwarded" else "localhost"
        b.refused("host_not_allowed", "GET", "/v1/arrays", {name: value}, host="evil.example")
        b.refused("cross_site", "POST", "/v1/sessions", {name: "evil.example", "Origin": "http://evil.example"})


def images_scripts_and_styles(b):
    for dest in ("image", "script", "style", "audio", "font", "track"):
        b.refused("cross_site", "GET", f"/v1/arrays/{b.array}/data?format=json", {**IMAGE, "Sec-Fetch-Dest": dest})
    # Over plain http to an address of the network browsers add nothing: the answer's type keeps it from running as a script.
    _, headers, _ = b.ask("GET", "/v1/arrays")
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Content-Type"] == "application/json"


def frames(b):
    for dest in ("iframe", "frame", "object", "embed"):
        b.refused("cross_site", "GET", "/docs", {**FORM, "Sec-Fetch-Dest": dest})
    # And where browsers do not say it, they do not show it.
    assert "frame-ancestors 'none'" in b.ask("GET", "/docs")[1]["Content-Security-Policy"]


def followed_links(b):
    for target in ("/", "/docs", "/docs/errors", "/openapi.json", f"/v1/arrays/{b.array}"):
        assert b.ask("GET", target, FORM)[0] == 200, target
    b.refused("cross_site", "POST", f"/v1/arrays/{b.array}:delete", FORM)


def event_source(b):
    fields = {"Origin": EVIL, **FETCH, "Accept": "text/event-stream", "Cache-Control": "no-store"}
    b.refused("cross_site", "GET", f"/v1/sessions/{b.session}/events", fields)


def web_socket(b):
    fields = {"Origin": EVIL, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
              "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "websocket", "Sec-Fetch-Dest": "websocket"}
    b.refused("cross_site", "GET", f"/v1/sessions/{b.session}/events", fields)


def preflights(b):
    for method, target in (("DELETE", f"/v1/arrays/{b.array}"), ("PUT", f"/v1/arrays/{b.array}/data"), ("POST", "/v1/run")):
        asked = {"Origin": EVIL, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "content-type,authorization", **FETCH}
        status, headers, _ = b.ask("OPTIONS", target, asked)
        assert status == 204 and not [name for name in headers if name.lower().startswith("access-control")], headers
        # A browser stops here; one that does not gets no further.
        b.refused("cross_site", method, target, {"Origin": EVIL, **FETCH, **JSON}, RUN)


def probes_are_open(b):
    for target in ("/livez", "/readyz", "/startupz", "/health", "/metrics"):
        assert b.ask("GET", target, {"Origin": EVIL, **FETCH}, host="evil.example")[0] == 200, target
    assert b.ask("OPTIONS", "/", host="evil.example")[0] == 204
    assert b.raw("OPTIONS / HTTP/1.0\r\n\r\n")[0] == 204 and b.raw("GET /readyz HTTP/1.0\r\n\r\n")[0] == 200
    # Their names are theirs alone.
    b.refused("host_not_allowed", "GET", "/livez/..;/v1/arrays", host="evil.example")


def own_page(b):
    own = {"Origin": f"http://127.0.0.1:{b.port}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    status, _, made = b.ask("POST", "/v1/sessions", {**own, **JSON}, {})
    assert status == 201, made
    assert b.ask("DELETE", f"/v1/sessions/{made['id']}", own)[0] == 204
    assert b.ask("GET", "/v1/info", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})[0] == 200


def refusals_take_no_part_in_keys_and_bodies(b):
    # A refused request leaves its connection as it found it, body and all.
    with socket.create_connection(("127.0.0.1", b.port), timeout=30) as wire:
        one = f"POST /v1/sessions HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{{}}"
        two = f"GET /v1/info HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        wire.sendall((one + two).encode())
        out = b""
        while piece := wire.recv(65536):
            out += piece
    assert out.count(b"HTTP/1.1 403 ") == 1 and out.count(b"HTTP/1.1 200 ") == 1, out


ATTACKS = [form_post, form_post_of_a_browser_without_fetch_metadata, multipart_form, simple_fetch_with_plain_text, beacon,
           forms_and_text_are_not_json_even_without_origin, sandboxed_frame, local_file, other_port_of_localhost, other_name_of_this_machine,
           other_scheme, origins_that_look_like_ours, two_origins, rebinding, names_that_look_like_loopback, names_of_loopback_are_all_right,
           hosts_that_are_none, absolute_targets, forwarded_hosts_count_for_nothing, images_scripts_and_styles, frames, followed_links,
           event_source, web_socket, preflights, probes_are_open, own_page, refusals_take_no_part_in_keys_and_bodies]


def named_origin_reads_and_writes(b):
    app = {"Origin": APP, **FETCH}
    status, headers, made = b.ask("POST", "/v1/sessions", {**app, **JSON}, {})
    assert status == 201 and headers["Access-Control-Allow-Origin"] == APP and "Origin" in headers["Vary"], headers
    exposed = headers["Access-Control-Expose-Headers"].split(", ")
    for name in ("Location", "ETag", "Link", "Retry-After", "Server-Timing", "X-Request-Id", "Array-Shape", "RateLimit", "Content-Range", "Idempotency-Replayed"):
        assert name in exposed, exposed
    assert headers["Access-Control-Allow-Credentials"] is None
    assert b.ask("DELETE", f"/v1/sessions/{made['id']}", app)[0] == 204
    # Refusals, unchanged answers and streams can be read as well.
    for method, target, more, want in (("GET", "/v1/arrays/arr_x", {}, 404), ("PUT", "/v1/info", {}, 405), ("POST", "/v1/run", {"Content-Type": "text/plain"}, 415),
                                       ("GET", f"/v1/sessions/{b.session}/events", {"Accept": "text/event-stream"}, 200), ("GET", "/livez", {}, 200),
                                       ("GET", f"/v1/arrays/{b.array}/data", {"Range": "bytes=0-3"}, 206)):
        status, headers, _ = b.ask(method, target, {**app, **more})
        assert status == want and headers["Access-Control-Allow-Origin"] == APP, (method, target, status, headers)
    etag = b.ask("GET", f"/v1/arrays/{b.array}", app)[1]["ETag"]
    status, headers, _ = b.ask("GET", f"/v1/arrays/{b.array}", {**app, "If-None-Match": etag})
    assert status == 304 and headers["Access-Control-Allow-Origin"] == APP, headers


def named_origin_preflight(b):
    asked = {"Origin": APP, "Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "authorization,if-match", **FETCH}
    status, headers, _ = b.ask("OPTIONS", f"/v1/arrays/{b.array}", asked)
    assert status == 204 and headers["Access-Control-Allow-Origin"] == APP and int(headers["Access-Control-Max-Age"]) > 0, headers
    assert headers["Access-Control-Allow-Methods"] == headers["Allow"] == "GET, HEAD, DELETE, OPTIONS", headers
    allowed = headers["Access-Control-Allow-Headers"].lower().split(", ")
    for name in ("authorization", "content-type", "idempotency-key", "if-match", "if-none-match", "prefer", "x-api-key", "x-request-id", "range", "last-event-id", "traceparent"):
        assert name in allowed, allowed
    assert "Access-Control-Request-Method" in headers["Vary"] and "Origin" in headers["Vary"]


def second_named_origin(b):
    assert b.ask("GET", "/v1/info", {"Origin": APP_AT_WORK, **FETCH})[1]["Access-Control-Allow-Origin"] == APP_AT_WORK


def other_origins_stay_out(b):
    for origin in (EVIL, "null", "http://app.example", "https://app.example:444", "https://app.example.evil.example", "https://evil-app.example", "https://app.example/"):
        b.refused("cross_site", "POST", "/v1/sessions", {"Origin": origin, **FETCH, **JSON}, {})
        headers = b.ask("OPTIONS", "/v1/run", {"Origin": origin, "Access-Control-Request-Method": "POST"})[1]
        assert headers["Access-Control-Allow-Origin"] is None and headers["Access-Control-Allow-Methods"] is None, headers
    # Answers to nobody in particular depend on Origin too.
    assert "Origin" in b.ask("GET", "/openapi.yaml")[1]["Vary"]
    b.refused("cross_site", "GET", f"/v1/arrays/{b.array}", IMAGE)
    b.refused("host_not_allowed", "GET", "/v1/arrays", {"Origin": APP, **FETCH}, host="app.example")


def named_host(b):
    for host in ("meshd.example.org", f"MESHD.example.org:{b.port}", "other.example.org:8443"):
        assert b.ask("GET", "/v1/info", host=host)[0] == 200, host
    for host in ("other.example.org", "x.meshd.example.org", "example.org"):
        b.refused("host_not_allowed", "GET", "/v1/info", host=host)
    assert b.ask("POST", "/v1/sessions", {"Origin": "http://meshd.example.org", **JSON}, b"[]", host="meshd.example.org")[0] == 422


NAMED = [named_origin_reads_and_writes, named_origin_preflight, second_named_origin, other_origins_stay_out, named_host]


def tell(rows, server):
    browser, failed = Browser(server), 0
    for row in rows:
        if sys.argv[2:] and row.__name__ not in sys.argv[2:]:
            continue
        try:
            row(browser)
            browser.unchanged()
        except Exception as error:
            failed += 1
            print(f"FAILED {row.__name__}: {type(error).__name__}: {error}")
    return failed


def main():
    with Meshd(sys.argv[1]) as server:
        failed = tell(ATTACKS, server)
    with Meshd(sys.argv[1], "--cors-origin", APP, "--cors-origin", APP_AT_WORK, "--allowed-host", "meshd.example.org,other.example.org:8443") as server:
        failed += tell(NAMED, server)
    # The same by the environment; and named origins open the door for their own pages only.
    os.environ.update(MESHD_CORS_ORIGIN=f"{APP},{APP_AT_WORK}", MESHD_ALLOWED_HOST="meshd.example.org,other.example.org:8443")
    with Meshd(sys.argv[1]) as server:
        failed += tell(NAMED + ATTACKS, server)
    print(f"{len(ATTACKS)} rows without and {len(NAMED) + len(ATTACKS)} with named origins, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
