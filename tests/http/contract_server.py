"""A meshd process for tests from outside: started on a free port with a data folder of its own, ended with SIGTERM."""

import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402

START_SECONDS = 60
STOP_SECONDS = 60


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # looked up in any case of letters
        self.body = body

    @property
    def media(self):
        return (self.headers.get("Content-Type") or "").split(";")[0].strip()

    def json(self):
        return json.loads(self.body)


class Server:
    def __init__(self, binary):
        self.folder = tempfile.TemporaryDirectory(prefix="meshd-contract-")
        self.port = free_port()
        self.process = subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.folder.name,
                                         "--devices", "4", "--log-level", "err"])
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if self.request("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the server does not start (exit {self.process.returncode})")
            time.sleep(0.05)

    def request(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            if isinstance(body, (dict, list)):
                headers = {"Content-Type": "application/json", **(headers or {})}
                body = json.dumps(body)
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()
