"""A server of the binary that MESHD_BINARY names, for the whole run; stopped at the end."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import pytest

import meshd

DEVICES = 8

# A shell starts what it runs in the background with SIGINT ignored, and Python leaves it so; tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Server:
    """A meshd of its own; `restart()` kills it and starts it again on the same port and data."""

    def __init__(self, binary, *options, tls=None):
        self.binary, self.options, self.tls = binary, options, tls
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="meshd-python-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        self.log = (self.folder / "log").open("ab")
        listen = ["--listen", f"127.0.0.1:{self.port}", "--data", str(self.folder / "data")]
        command = [self.binary, "serve", *listen, "--devices", str(DEVICES), "--log-level", "warn", *self.options]
        # A server refuses variables of its prefix that it does not know, such as MESHD_BINARY.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MESHD_")}
        self.process = subprocess.Popen(command, stderr=self.log, env=environment)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log_text()
            try:
                with urllib.request.urlopen(self.url + "/readyz", timeout=5, context=self.tls):
                    return self
            except OSError:
                time.sleep(0.02)
        raise AssertionError("meshd did not get ready")

    def stop(self, how=signal.SIGTERM):
        assert self.process.poll() is None, f"the server has ended by itself with {self.process.returncode}: {self.log_text()}"
        self.process.send_signal(how)
        code = self.process.wait(60)
        assert how != signal.SIGKILL or code == -how, f"the server has ended with {code}: {self.log_text()}"
        self.log.close()

    def log_text(self):
        return (self.folder / "log").read_text()

    def restart(self):
        self.stop(signal.SIGKILL)
        self.start()

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("MESHD_BINARY")
    assert path and os.access(path, os.X_OK), "set MESHD_BINARY to the server to test against: build/release/meshd"
    return path


@pytest.fixture(scope="session")
def server(binary):
    server = Server(binary).start()
    yield server
    server.remove()


@pytest.fixture
def own_server(binary):
    """A server that a test may kill."""
    server = Server(binary).start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def m(server):
    with meshd.connect(server.url) as client:
        yield client
