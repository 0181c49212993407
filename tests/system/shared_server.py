"""A server with a tokens file, for tests with several principals; and what they say."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import traceback

from server import Meshd, ok, refused, until  # noqa: F401: its tests take them from here

BINARY = sys.argv[1]
DEADLINE = 30


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Shared:
    """A server with a tokens file, and what it logs."""

    def __init__(self, tokens, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="meshd-principals-")
        self.path = pathlib.Path(self.folder.name)
        self.tokens = self.path / "tokens"
        self.write(tokens)
        self.log = open(self.path / "log", "wb")
        self.server = Meshd(BINARY, "--tokens", str(self.tokens), "--log-format", "json", *options, data=self.folder.name, log=self.log)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.log.close()
        self.folder.cleanup()

    def write(self, text):
        """As editors do: a new file in the place of the old one."""
        new = self.path / "tokens.new"
        new.write_text(text)
        new.chmod(0o600)
        os.replace(new, self.tokens)

    def events(self, name):
        lines = (self.path / "log").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [each for each in found if each["event"] == name]

    def reload(self):
        """SIGHUP; returns what was logged of it."""
        before = len(self.reloads())
        self.server.process.send_signal(signal.SIGHUP)
        until(lambda: len(self.reloads()) > before, "the file of tokens is read again")
        return self.reloads()[-1]

    def reloads(self):
        return [each for each in self.events("audit") if each["operation"] == "reloadTokens"]

    def ask(self, token, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, {**bearer(token), **(headers or {})})


def run(tests):
    """Runs what is named test_*, or what the command line names; the exit code."""
    told, failed = 0, 0
    for name, test in tests.items():
        if not name.startswith("test_") or (sys.argv[2:] and name not in sys.argv[2:]):
            continue
        told += 1
        try:
            test()
        except Exception:  # the other tests may say more than the first failure
            failed += 1
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{told - failed} tests passed, {failed} failed")
    return 1 if failed or not told else 0
