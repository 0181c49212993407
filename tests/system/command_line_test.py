"""What the command line and the environment may not say: command_line_test.py BINARY. A server that is misconfigured says so and
ends; it never starts as something else than what was asked for."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv[1]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MESHD_")}


def serve(*arguments, **environment):
    """Runs a server that is expected to end by itself: its exit code and what it wrote. Port 0 and a folder of its own: were it to
    start, nothing else would notice."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run([BINARY, "serve", "--listen", "127.0.0.1:0", "--data", folder + "/data", *arguments],
                                 env={**CLEAN, **environment}, capture_output=True, text=True, timeout=30)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"serve {arguments} {environment} started")
        return run.returncode, run.stdout + run.stderr, pathlib.Path(folder, "data").exists()


class CommandLine(unittest.TestCase):
    def refused(self, *arguments, says, **environment):
        code, text, made = serve(*arguments, **environment)
        self.assertNotEqual(code, 0, text)
        self.assertGreater(code, 0, text)  # not by a signal
        for part in says:
            self.assertIn(part, text)
        return made

    def test_unknown_level_of_the_log_is_refused(self):
        self.refused("--log-level", "loud", says=["--log-level", "loud", "warn"])
        self.refused(MESHD_LOG_LEVEL="loud", says=["--log-level", "loud", "warn"])

    def test_unknown_variables_are_refused_with_the_nearest_name(self):
        made = self.refused(MESHD_LOGLEVEL="warn", MESHD_TOKEN="/nothing",
                            says=["MESHD_LOGLEVEL", "is MESHD_LOG_LEVEL meant?", "MESHD_TOKEN,", "is MESHD_TOKENS meant?"])
        self.assertFalse(made, "the data folder was touched")
        self.refused(MESHD_PORT="8080", says=["MESHD_PORT"])

    def test_other_commands_ignore_the_environment_of_a_server(self):
        done = subprocess.run([BINARY, "--version"], env={**CLEAN, "MESHD_LOGLEVEL": "x"}, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
