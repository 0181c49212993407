"""What the command line and the environment may not say: command_line_test.py BINARY. A server that is misconfigured says so and
ends; it never starts as something else than what was asked for."""
import http.client
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from server import Meshd

BINARY = sys.argv[1]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MESHD_")}


def serve(*arguments, listen="127.0.0.1:0", **environment):
    """Runs a server that is expected to end by itself: its exit code and what it wrote. Port 0 and a folder of its own: were it to
    start, nothing else would notice."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run([BINARY, "serve", "--listen", listen, "--data", folder + "/data", *arguments],
                                 env={**CLEAN, **environment}, capture_output=True, text=True, timeout=30)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"serve {arguments} {environment} started")
        return run.returncode, run.stdout + run.stderr, pathlib.Path(folder, "data").exists()


def permissions(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Started:
    """A server that is expected to start; what it logs is in `log`. In a process of its own umask, which lets everybody in."""

    def __init__(self, folder, *arguments, listen="127.0.0.1:0", **environment):
        self.log = ""
        self.process = subprocess.Popen([BINARY, "serve", "--listen", listen, "--data", folder + "/data", *arguments], env={**CLEAN, **environment},
                                        stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.umask(0))
        deadline = time.time() + 60
        while " listening " not in self.log:
            line = self.process.stderr.readline()
            if not line or time.time() > deadline:
                raise AssertionError(f"did not start: {self.log}")
            self.log += line
        self.port = int(re.search(r" listening .*port=(\d+)", self.log)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.log += self.process.communicate(timeout=60)[1]

    def ask(self, method, path, host, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, {"Host": host, "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status


class CommandLine(unittest.TestCase):
    def refused(self, *arguments, says, **environment):
        code, text, made = serve(*arguments, **environment)
        self.assertNotEqual(code, 0, text)
        self.assertGreater(code, 0, text)  # not by a signal
        for part in says:
            self.assertIn(part, text)
        return made

    def test_json_log_has_numbers_as_numbers_and_memory_is_shared_out(self):
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        with Meshd(BINARY, "--log-format", "json", "--log-level", "info", "--memory", "2GB", log=log) as server:
            server.ask("GET", "/v1/arrays/%22%C3%A9")
        log.seek(0)
        lines = {line["event"]: line for line in map(json.loads, log)}
        gib = 1 << 30
        self.assertEqual({name: lines["memory"][name] for name in ("bytes", "jobs", "arrays")},
                         {"bytes": 2 * gib, "jobs": 3 * gib // 2, "arrays": gib // 2})
        request = lines["request"]
        self.assertEqual((request["status"], request["code"], request["target"]), (404, "not_found", "/v1/arrays/%22%C3%A9"))
        self.assertIsInstance(request["ms"], float)
        self.assertIs(lines["recovered"]["clean"], True)
        self.assertEqual(lines["listening"]["port"], server.port)

    def test_unknown_level_of_the_log_is_refused(self):
        self.refused("--log-level", "loud", says=["--log-level", "loud", "warn"])
        self.refused(MESHD_LOG_LEVEL="loud", says=["--log-level", "loud", "warn"])

    def test_unknown_variables_are_refused_with_the_nearest_name(self):
        made = self.refused(MESHD_LOGLEVEL="warn", MESHD_TOKEN="/nothing",
                            says=["MESHD_LOGLEVEL", "is MESHD_LOG_LEVEL meant?", "MESHD_TOKEN,", "is MESHD_TOKENS meant?"])
        self.assertFalse(made, "the data folder was touched")
        self.refused(MESHD_PORT="8080", says=["MESHD_PORT"])

    def test_misspelt_options_and_commands_are_answered_with_the_nearest_name(self):
        for arguments, words in ((["--devcies", "8"], "there is no option '--devcies'; did you mean '--devices'?"),
                                 (["--devices", "8", "--log-lvl=warn"], "there is no option '--log-lvl'; did you mean '--log-level'?")):
            code, said, made = serve(*arguments)
            self.assertTrue(code != 0 and words in said and not made, said)
        for words, nearest in ((["srve"], "there is no command 'srve'; did you mean 'serve'?"), (["tokens", "hsah"], "there is no command 'hsah'; did you mean 'hash'?")):
            run = subprocess.run([BINARY, *words], env=CLEAN, capture_output=True, text=True, timeout=30)
            self.assertTrue(run.returncode != 0 and nearest in run.stderr, run.stderr)
        run = subprocess.run([BINARY, "serve", "--help"], env=CLEAN, capture_output=True, text=True, timeout=30)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_open_to_the_network_needs_tokens_or_a_word(self):
        for listen in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
            made = self.refused(listen=listen, says=["--tokens", "--insecure", listen])
            self.assertFalse(made, "the data folder was touched")

    def test_hosts_and_origins_that_are_none_are_refused(self):
        self.refused("--allowed-host", "*.example.org", says=["--allowed-host", "'*.example.org'"])
        self.refused("--cors-origin", "*", says=["--cors-origin", "'*'"])
        self.refused(MESHD_CORS_ORIGIN="https://a.example,https://b.example/path", says=["--cors-origin", "'https://b.example/path'"])

    def test_open_to_the_network_when_that_is_meant(self):
        with tempfile.TemporaryDirectory() as folder:
            for more in ({"arguments": ["--insecure"]}, {"MESHD_INSECURE": "1"}):
                with Started(folder, *more.pop("arguments", []), listen="0.0.0.0:0", **more) as server:
                    # By any address, by no name.
                    self.assertEqual([200, 200, 403], [server.ask("GET", "/v1/info", host) for host in ("198.51.100.7", "[2001:db8::1]", "example.org")])

    def test_data_is_for_its_owner_whatever_the_umask(self):
        with tempfile.TemporaryDirectory() as folder:
            data = folder + "/data"
            array = json.dumps({"dtype": "float32", "shape": [2], "data": [1, 2]})

            def check():
                files = [(where, name) for where, folders, names in os.walk(data) for name in folders + names] + [(folder, "data")]
                self.assertGreater(len(files), 60)
                for where, name in files:
                    path = os.path.join(where, name)
                    self.assertEqual(0o700 if os.path.isdir(path) else 0o600, permissions(path), path)

            with Started(folder) as server:
                self.assertEqual(201, server.ask("POST", "/v1/arrays", "localhost", array))
                self.assertTrue(os.path.exists(data + "/meshd.db-wal"))
                check()
            # What older servers left open is closed at the start.
            os.chmod(data, 0o755)
            os.chmod(data + "/blobs", 0o755)
            os.chmod(data + "/meshd.db", 0o644)
            with Started(folder) as server:
                check()

    def test_tokens_that_others_can_read_are_warned_of(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = folder + "/tokens"
            pathlib.Path(tokens).write_text("a-token\n")
            for mode, warned in ((0o644, True), (0o620, True), (0o600, False), (0o640, False)):
                os.chmod(tokens, mode)
                with Started(folder, "--tokens", tokens) as server:
                    self.assertEqual(warned, "tokens_open_to_others" in server.log, (oct(mode), server.log))

    def test_other_commands_ignore_the_environment_of_a_server(self):
        done = subprocess.run([BINARY, "--version"], env={**CLEAN, "MESHD_LOGLEVEL": "x"}, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
