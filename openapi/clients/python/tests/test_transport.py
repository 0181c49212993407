"""Retries, keys, timeouts, against a server that misbehaves as told."""

import collections
import email.utils
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time

import jax
import pytest

import meshd
from meshd import _transport
from meshd._transport import Settings, Transport

Seen = collections.namedtuple("Seen", "method path headers body")


class Misbehaving:
    """Answers requests by a list of what to do: a status, (status, headers, document), or "close"."""

    def __init__(self):
        self.seen, self.plan = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append(Seen(self.command, self.path, dict(self.headers), body))
                what = outer.plan.pop(0) if outer.plan else 200
                if what == "close":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if what == "silence":
                    time.sleep(2)
                    self.close_connection = True
                    return
                status, headers, document = (
                    what if isinstance(what, tuple) else (what, {}, {"code": "draining", "detail": "later"})
                )
                data = json.dumps(document).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def bad():
    server = Misbehaving()
    yield server
    server.server.shutdown()


@pytest.fixture
def pauses(monkeypatch):
    """What was waited, without waiting."""
    found = []
    monkeypatch.setattr(_transport.time, "sleep", found.append)
    return found


def test_lost_connections_are_retried(bad, pauses):
    bad.plan = ["close", "close", 200]
    assert Transport(Settings(bad.url)).request("GET", "/x").status == 200
    assert len(bad.seen) == 3


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_a_busy_server_is_asked_again_as_it_says(bad, pauses, method):
    bad.plan = [(503, {"Retry-After": "2"}, {}), (429, {"Retry-After": "1"}, {}), 503, 200]
    assert Transport(Settings(bad.url)).request(method, "/x").status == 200
    assert pauses[:2] == [2, 1] and 0 < pauses[2] < 5


def test_retry_after_as_a_date_and_what_is_too_long():
    assert 3 < _transport.pause_of(0, email.utils.formatdate(time.time() + 5, usegmt=True)) <= 5
    assert _transport.pause_of(0, "99999") == _transport.LONGEST_PAUSE
    assert _transport.pause_of(0, "soon") <= 0.1 and _transport.pause_of(-1, None) == 0


def test_a_repeated_post_has_the_same_key(bad, pauses):
    bad.plan = ["close", 503, 200]
    Transport(Settings(bad.url)).json("POST", "/x", {"a": 1}, keyed=True)
    keys = {each.headers["Idempotency-Key"] for each in bad.seen}
    assert len(bad.seen) == 3 and len(keys) == 1 and {each.body for each in bad.seen} == {b'{"a":1}'}
    Transport(Settings(bad.url)).json("POST", "/x", {"a": 1}, keyed=True)
    assert bad.seen[-1].headers["Idempotency-Key"] not in keys
    Transport(Settings(bad.url)).json("POST", "/x", {"a": 1})
    assert "Idempotency-Key" not in bad.seen[-1].headers


def test_patience_ends(bad, pauses):
    bad.plan = [503] * 10
    with pytest.raises(meshd.Draining):
        Transport(Settings(bad.url, retries=3)).request("GET", "/x")
    assert len(bad.seen) == 4


def test_refusals_are_not_retried(bad, pauses):
    bad.plan = [(404, {}, {"code": "not_found", "detail": "no"})]
    with pytest.raises(meshd.NotFound):
        Transport(Settings(bad.url)).request("GET", "/x")
    assert len(bad.seen) == 1 and not pauses


def test_a_deletion_whose_answer_was_lost_is_done(bad, pauses):
    bad.plan = ["close", (404, {}, {"code": "not_found", "detail": "gone"})]
    assert Transport(Settings(bad.url)).request("DELETE", "/x").status == 404


def test_timeouts_are_not_retried(bad):
    bad.plan = ["silence"]
    with pytest.raises(meshd.TimedOut, match="0.2 s"):
        Transport(Settings(bad.url, timeout=0.2)).request("POST", "/x")
    assert len(bad.seen) == 1


def test_nobody_there(pauses):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(meshd.ConnectionFailed, match=str(port)):
        meshd.connect(f"http://127.0.0.1:{port}", retries=1)


def test_one_connection_is_kept_for_each_thread(m):
    m.info()
    first = m._transport._kept()
    m.info()
    assert m._transport._kept() is first
    others = []
    thread = threading.Thread(target=lambda: (m.info(), others.append(m._transport._kept())))
    thread.start()
    thread.join()
    assert others[0] is not first


def test_answers_that_are_no_problem_documents(bad):
    bad.plan = [(502, {}, ["a proxy"])]
    with pytest.raises(meshd.Error) as caught:
        Transport(Settings(bad.url, retries=0)).request("GET", "/x")
    assert caught.value.status == 502 and "a proxy" in str(caught.value)


def test_addresses():
    assert Transport(Settings("localhost:81")).port == 81 and Transport(Settings("https://h")).port == 443
    assert Transport(Settings("http://h/meshd/")).target("/v1/info") == "/meshd/v1/info"
    for wrong in ("ftp://x", "", "http://"):
        with pytest.raises(ValueError, match="address"):
            Transport(Settings(wrong))


def test_tokens(binary, tmp_path):
    from conftest import Server

    tokens = tmp_path / "tokens"
    tokens.write_text("ann secret-of-ann\n")
    tokens.chmod(0o600)
    server = Server(binary, "--tokens", str(tokens)).start()
    try:
        with meshd.connect(server.url, token="secret-of-ann") as m:
            assert m.run(lambda x: x + 1, 1) == 2 and list(m.session().effects(follow=False)) == []
        with pytest.raises(meshd.Unauthorized):
            meshd.connect(server.url, token="wrong")
    finally:
        server.remove()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_tls(binary, tmp_path, monkeypatch):
    from conftest import Server

    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {chain}"
    subprocess.run(command.split(), check=True, capture_output=True)
    key.chmod(0o600)
    trusted = ssl.create_default_context(cafile=str(chain))
    server = Server(binary, "--tls-cert", str(chain), "--tls-key", str(key), tls=trusted).start()
    try:
        with meshd.connect(server.url, tls=trusted) as m:
            assert m.run(lambda x: x + 1, 1) == 2
            with m.session() as session:
                session.run(log_it, 3)
                assert next(session.effects()).sequence == 1
        with pytest.raises(meshd.ConnectionFailed, match="certificate"):
            meshd.connect(server.url, retries=0)
        monkeypatch.setenv("MESHD_URL", server.url)
        monkeypatch.setenv("MESHD_CA", str(chain))
        with meshd.connect() as m:
            assert m.info()["name"] == "meshd"
    finally:
        server.remove()


def log_it(x):
    jax.debug.callback(lambda _: None, x, ordered=True)
    return x


def test_what_is_no_address_and_no_token():
    for wrong in ("http://h:port", "http://h:0"):
        with pytest.raises(ValueError, match="expected http://HOST:PORT"):
            Transport(Settings(wrong))
    with pytest.raises(ValueError, match="token="):
        Transport(Settings("http://ann:secret@h"))
    for token in ("two words", "line\n", "caf\u00e9"):
        with pytest.raises(ValueError, match="ASCII"):
            Transport(Settings("http://h", token=token))
    with pytest.raises(TypeError, match="create_default_context"):
        Transport(Settings("https://h", tls="ca.pem"))
    with pytest.raises(TypeError, match="timeout is a number of seconds"):
        Transport(Settings("http://h", timeout="5s"))


def test_what_answers_may_be_another_program(bad, server):
    for status, document in ((200, {"name": "another"}), (200, [1]), (404, "not here"), (404, {"detail": "Not Found"})):
        bad.plan = [(status, {}, document)]
        with pytest.raises(meshd.ConnectionFailed, match="is no meshd server"):
            meshd.connect(bad.url)
    with pytest.raises(meshd.ConnectionFailed, match="'/v1'"):
        meshd.connect(server.url + "/v1")
    bad.plan = [(401, {}, {"code": "unauthorized", "detail": "a token, please"})]
    with pytest.raises(meshd.Unauthorized, match="please"):
        meshd.connect(bad.url)
    bad.plan = [(400, {}, ["this port speaks TLS"])]
    with pytest.raises(meshd.Error, match="speaks TLS"):
        meshd.connect(bad.url)


def test_the_environment_names_the_server(server, bad, monkeypatch, tmp_path):
    monkeypatch.setenv("MESHD_URL", server.url)
    monkeypatch.setenv("MESHD_TOKEN", "one-of-the-environment")
    with meshd.connect() as m:
        assert repr(m) == f"meshd.Client({server.url})" and m._transport.settings.token == "one-of-the-environment"
    bad.plan = [(200, {}, {"name": "meshd"})]
    meshd.connect(bad.url)
    assert "Authorization" not in bad.seen[-1].headers, "a token is for the server of the environment alone"
    monkeypatch.delenv("MESHD_TOKEN")
    file = tmp_path / "token"
    file.write_text("of-a-file\nsecond line\n")
    monkeypatch.setenv("MESHD_TOKEN_FILE", str(file))
    with meshd.connect() as m:
        assert m._transport.settings.token == "of-a-file"


def test_small_parts_of_a_body_travel_together(bad):
    parts = [bytes([n % 251]) * n for n in (0, 1, 3000, 70_000, 200, 64 * 1024, 5)] + [b"x"] * 100_000
    chunks = list(_transport.chunks_of(parts))
    assert len(chunks) <= 6 and b"".join(chunks) == b"".join(parts)
    assert list(_transport.chunks_of([])) == [] and any(chunk is parts[3] for chunk in chunks)
    bad.plan = [200]
    Transport(Settings(bad.url)).request("POST", "/x", body=parts)
    assert bad.seen[-1].body == b"".join(parts)
