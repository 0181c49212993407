"""HTTPS as clients and operators meet it: tls_test.py BINARY. Certificates are made by openssl, requests by the real curl and by Python's
own TLS; attacks are bytes on sockets."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from server import Meshd

BINARY = sys.argv[1]
DEADLINE = 60


def make_certificate(folder, name, kind=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
    """`folder`/`name`.crt and .key, with the subject /CN=`name`."""
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


class SecureMeshd(Meshd):
    """A server that speaks TLS with `certificate`, which clients trust."""

    def __init__(self, folder, *arguments, log=None):
        self.certificate, self.key = folder / "server.crt", folder / "server.key"
        super().__init__(BINARY, "--tls-cert", str(self.certificate), "--tls-key", str(self.key), *arguments, log=log)

    def start(self):
        super().start()
        self.url = self.url.replace("http:", "https:")

    def client_context(self):
        return ssl.create_default_context(cafile=str(self.certificate))

    def connect(self, context=None):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)
        return (context or self.client_context()).wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(self, method, path, body=None, headers=None):
        import http.client
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=DEADLINE, context=self.client_context())
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, answer.headers, json.loads(data) if "json" in (answer.getheader("Content-Type") or "") and data else data
        finally:
            connection.close()


def subject_of(connection):
    return dict(part[0] for part in connection.getpeercert()["subject"])["commonName"]


def one_answer(connection):
    """Reads one answer with a Content-Length; its status and body."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = connection.recv(65536)
        assert more, f"the connection ended after {got!r}"
        got += more
    head, body = got.split(b"\r\n\r\n", 1)
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < size:
        body += connection.recv(65536)
    return int(head.split()[1]), body


LIVEZ = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="meshd-tls-")
        cls.folder = pathlib.Path(cls.temporary.name)
        make_certificate(cls.folder, "server")
        cls.log = open(cls.folder / "log", "w+")
        cls.server = SecureMeshd(cls.folder, "--log-level", "info", log=cls.log)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        shutil.rmtree(cls.server.folder, ignore_errors=True)
        cls.log.close()
        cls.temporary.cleanup()
        assert code == 0, f"the server ended with {code}"

    def curl(self, *arguments, code=0):
        done = subprocess.run(["curl", "-sS", "--cacert", str(self.server.certificate), "-m", str(DEADLINE), *arguments], capture_output=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[:400], done.stderr[:400]))
        return done.stdout

    def alive(self):
        self.assertEqual(self.server.ask("GET", "/livez")[0], 200)

    def test_curl_keeps_its_connection(self):
        targets = [argument for _ in range(20) for argument in ("-o", "/dev/null", self.server.url + "/livez")]
        connects = self.curl("-w", "%{num_connects} %{http_code}\n", *targets).split()
        self.assertEqual(sum(map(int, connects[::2])), 1)
        self.assertEqual(set(connects[1::2]), {b"200"})

    def test_curl_without_the_certificate_refuses(self):
        done = subprocess.run(["curl", "-sS", self.server.url + "/livez"], capture_output=True)
        self.assertEqual(done.returncode, 60, done.stderr)
        self.alive()

    def test_arrays_come_back_as_they_went(self):
        data = random.Random(1).randbytes(9 << 20)
        (self.folder / "up.bin").write_bytes(data)
        for flags in (["--data-binary", "@up.bin"], ["-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "--data-binary", "@up.bin"]):
            made = json.loads(self.curl(f"{self.server.url}/v1/arrays?dtype=uint8&shape={len(data)}", *flags))
            self.curl("-o", "down.bin", f"{self.server.url}/v1/arrays/{made['id']}/data")
            self.assertTrue((self.folder / "down.bin").read_bytes() == data)
        self.assertEqual(self.curl("-r", "1000000-1000009", f"{self.server.url}/v1/arrays/{made['id']}/data"), data[1000000:1000010])

    def test_client_that_reads_slowly_gets_every_byte(self):
        data = random.Random(2).randbytes(3 << 20)
        made = self.server.ask("POST", f"/v1/arrays?dtype=uint8&shape={len(data)}", data, {"Content-Type": "application/octet-stream"})[2]
        with self.server.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
            client.sendall(f"GET /v1/arrays/{made['id']}/data HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            got = b""
            while b"\r\n\r\n" not in got:
                got += client.recv(100)
            body = bytearray(got.split(b"\r\n\r\n", 1)[1])
            while len(body) < len(data):
                body += client.recv(3000)
            self.assertTrue(bytes(body) == data)
            client.sendall(LIVEZ)
            self.assertEqual(one_answer(client)[0], 200)

    def test_events_come_as_they_happen(self):
        session = self.server.ask("POST", "/v1/sessions")[2]["id"]
        text = ("func.func @main(%n: tensor<i32>) -> tensor<i32> { stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) "
                "{has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<i32>) -> () return %n : tensor<i32> }")
        with self.server.connect() as client:
            client.sendall(f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            for number in (1, 2, 3):
                body = json.dumps({"program": {"text": text}, "arguments": [number]})
                self.assertEqual(self.server.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Content-Type": "application/json"})[0], 200)
                got = b""
                while b"id: %d\n" % number not in got.replace(b"id:%d\n" % number, b"id: %d\n" % number):
                    more = client.recv(65536)
                    self.assertTrue(more)
                    got += more

    def test_pipelined_requests_in_one_record_and_in_one_byte_records_are_answered(self):
        with self.server.connect() as client:
            client.sendall(LIVEZ * 40)
            for byte in LIVEZ:
                client.sendall(bytes([byte]))
            got = b""
            while got.count(b"HTTP/1.1 200 OK") < 41:
                got += client.recv(65536)

    def test_answers_end_with_close_notify(self):
        with self.server.connect() as client:
            client.sendall(LIVEZ.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            self.assertEqual(one_answer(client)[0], 200)
            self.assertEqual(client.recv(100), b"")  # ssl.SSLEOFError without it

    def test_plain_http_is_told_to_use_tls(self):
        done = subprocess.run(["curl", "-sS", "-w", " %{http_code}", self.server.url.replace("https:", "http:") + "/livez"], capture_output=True)
        self.assertEqual(done.stdout, b"this port speaks TLS: ask by https://\n 400", done.stderr)
        self.alive()

    def test_old_versions_are_refused(self):
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = version
            with self.assertRaises(ssl.SSLError):
                self.server.connect(context)
        context = self.server.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.server.connect(context) as client:
            self.assertIn("ECDHE", client.cipher()[0])
            client.sendall(LIVEZ)
            self.assertEqual(one_answer(client)[0], 200)

    def test_renegotiation_is_refused(self):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.server.port}", "-tls1_2"], input=b"R\n", capture_output=True,
                              timeout=DEADLINE)
        self.assertIn(b"no renegotiation", done.stderr)
        self.alive()

    def test_garbage_and_handshakes_that_break_off_change_nothing(self):
        random_bytes = random.Random(3)
        hello = self.client_hello()
        sockets = []
        for number in range(200):
            client = socket.create_connection(("127.0.0.1", self.server.port), timeout=DEADLINE)
            client.sendall(hello[:random_bytes.randrange(1, len(hello))])
            if number % 3 == 0:
                client.close()
            elif number % 3 == 1:
                client.sendall(random_bytes.randbytes(random_bytes.randrange(1, 2000)))
                sockets.append(client)
            else:
                sockets.append(client)
            if number % 20 == 0:
                self.alive()
        for number in range(50):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=DEADLINE) as client:
                try:
                    client.sendall(b"\x16" * (number % 2) + random_bytes.randbytes(random_bytes.randrange(1, 40000)))
                except OSError:
                    pass  # closed already
        # With 133 of them still open; nobody's handshake may take longer than a head.
        self.alive()
        for client in sockets:
            try:
                while client.recv(4096):
                    pass
            except ConnectionError:
                pass
            client.close()

    def client_hello(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.server.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        return outgoing.read()

    def test_health_probe_speaks_tls(self):
        def health(*arguments):
            return subprocess.run([BINARY, "health", *arguments], capture_output=True, timeout=DEADLINE)
        address = f"https://127.0.0.1:{self.server.port}"
        self.assertEqual(health(address, "--ca", str(self.server.certificate)).returncode, 0)
        self.assertEqual(health(address, "--insecure-skip-verify").returncode, 0)
        self.assertNotEqual(health(address).returncode, 0)
        self.assertNotEqual(health(f"127.0.0.1:{self.server.port}").returncode, 0)


class Reload(unittest.TestCase):
    def test_new_connections_get_the_new_certificate_and_old_ones_live_on(self):
        with tempfile.TemporaryDirectory(prefix="meshd-tls-") as name:
            folder = pathlib.Path(name)
            make_certificate(folder, "server")
            with open(folder / "log", "w") as log, SecureMeshd(folder, "--log-level", "info", log=log) as server, server.connect() as old:
                def logged(text, times):
                    deadline = time.time() + DEADLINE
                    while (folder / "log").read_text().count(text) < times:
                        self.assertLess(time.time(), deadline, text)
                        time.sleep(0.02)

                def works(connection):
                    connection.sendall(LIVEZ)
                    self.assertEqual(one_answer(connection)[0], 200)
                works(old)
                good = server.certificate.read_bytes()
                server.certificate.write_text("no certificate any more\n")
                server.process.send_signal(signal.SIGHUP)
                logged("certificate_not_reloaded", 1)
                server.certificate.write_bytes(good)
                with server.connect() as same:
                    self.assertEqual(subject_of(same), "server")
                    works(same)
                for path, fresh in zip((server.certificate, server.key), make_certificate(folder, "fresh")):
                    shutil.copy(fresh, path)
                server.process.send_signal(signal.SIGHUP)
                logged("/CN=fresh", 1)
                with server.connect() as new:
                    self.assertEqual(subject_of(new), "fresh")
                    works(new)
                self.assertEqual(subject_of(old), "server")
                works(old)


class Start(unittest.TestCase):
    def refused(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([BINARY, "serve", "--listen", "127.0.0.1:0", "--data", folder + "/data", *map(str, arguments)], capture_output=True, text=True,
                                  timeout=DEADLINE, env={name: value for name, value in os.environ.items() if not name.startswith("MESHD_")})
        self.assertGreater(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_files_that_do_not_fit_are_named(self):
        with tempfile.TemporaryDirectory(prefix="meshd-tls-") as name:
            folder = pathlib.Path(name)
            certificate, key = make_certificate(folder, "one")
            _, other = make_certificate(folder, "two")
            text = self.refused("--tls-cert", certificate, "--tls-key", other)
            self.assertIn(str(other), text)
            self.assertIn("is not the key of", text)
            self.assertIn("No such file", self.refused("--tls-cert", folder / "missing", "--tls-key", key))
            self.assertIn("--tls-key", self.refused("--tls-cert", certificate))
            self.assertIn("--tls-cert", self.refused("--tls-key", key))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
