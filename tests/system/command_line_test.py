"""What the command line and the environment may not say: command_line_test.py BINARY. A server that is misconfigured says so and
ends; it never starts as something else than what was asked for."""
import fcntl
import http.client
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from server import Meshd, until

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

    def test_memory_that_serves_nobody_is_refused(self):
        for given in ("-5", "1", "15MB"):
            made = self.refused("--memory", given, says=["--memory: expected 0 or at least 16777216 bytes, got "])
            self.assertFalse(made, "the data folder was touched")
        self.refused(MESHD_MEMORY="1kb", says=["--memory: expected 0 or at least 16777216 bytes, got 1024"])
        self.refused("--memory-limit", "-1", says=["--memory-limit: expected 0 or at least 1 bytes, got -1"])
        self.refused("--array-memory", "-1", says=["--array-memory: expected 0 or at least 1 bytes"])

    def test_signal_that_comes_while_a_server_starts_ends_it_in_good_order(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([BINARY, "serve", "--listen", "127.0.0.1:0", "--data", folder + "/data"], env=CLEAN, stderr=subprocess.PIPE)
            caught = pathlib.Path(f"/proc/{process.pid}/status")
            bit = 1 << (signal.SIGTERM - 1)
            until(lambda: int(re.search(r"SigCgt:\s+(\w+)", caught.read_text())[1], 16) & bit, "it catches SIGTERM")
            process.terminate()
            said = process.communicate(timeout=60)[1].decode()
            self.assertEqual(process.returncode, 0, said)
            self.assertIn("stopped clean=true", said)

    def test_log_that_nobody_reads_keeps_no_server_from_its_end(self):
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        try:
            with Meshd(BINARY, "--log-level", "info", log=writing) as server:
                for _ in range(100):
                    server.ask("GET", "/v1/arrays")
                self.assertEqual(server.stop(), 0)
        finally:
            os.close(writing)
            os.close(reading)

    def test_lines_that_cannot_be_written_are_counted(self):
        with open("/dev/full", "wb") as full, Meshd(BINARY, "--log-level", "info", log=full) as server:
            def lost():
                text = server.ask("GET", "/metrics")[2].decode()
                return int(re.search(r"^meshd_log_lines_dropped_total (\d+)$", text, re.MULTILINE)[1])
            until(lost, "the lines of the start are lost")

    def test_long_target_of_a_request_is_shortened_in_the_log(self):
        with tempfile.TemporaryFile() as log, Meshd(BINARY, "--log-level", "info", log=log) as server:
            server.ask("GET", "/v1/arrays?after=" + "x" * 4000)
            self.assertEqual(server.stop(), 0)
            log.seek(0)
            line = next(line for line in log.read().decode().splitlines() if "/v1/arrays?after=" in line)
        self.assertRegex(line, ' target="/v1/arrays[?]after=x{400,500}\u2026" ')
        self.assertLess(len(line), 1000)

    def test_streams_that_were_closed_are_no_files_of_the_server(self):
        with Meshd(BINARY, launcher=["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]) as server:
            for number in (0, 1, 2):
                self.assertEqual(os.readlink(f"/proc/{server.process.pid}/fd/{number}"), "/dev/null")

    def test_unknown_level_of_the_log_is_refused(self):
        self.refused("--log-level", "loud", says=["--log-level", "loud", "warn"])
        self.refused(MESHD_LOG_LEVEL="loud", says=["--log-level", "loud", "warn"])

    def test_unknown_variables_are_refused_with_the_nearest_name(self):
        made = self.refused(MESHD_LOGLEVEL="warn", MESHD_TOKNS="/nothing",
                            says=["MESHD_LOGLEVEL", "is MESHD_LOG_LEVEL meant?", "MESHD_TOKNS,", "is MESHD_TOKENS meant?"])
        self.assertFalse(made, "the data folder was touched")
        self.refused(MESHD_PORT="8080", says=["MESHD_PORT"])

    def test_misspelt_options_and_commands_are_answered_with_the_nearest_name(self):
        for arguments, words in ((["--devcies", "8"], "no option '--devcies'; did you mean '--devices'?"),
                                 (["--devices", "8", "--log-lvl=warn"], "no option '--log-lvl'; did you mean '--log-level'?")):
            code, said, made = serve(*arguments)
            self.assertTrue(code != 0 and words in said and not made, said)
        for words, nearest in ((["srve"], "no command 'srve'; did you mean 'serve'?"), (["tokens", "hsah"], "no command 'hsah'; did you mean 'hash'?")):
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

    def test_variables_of_the_client_do_not_stop_a_server(self):
        with tempfile.TemporaryDirectory() as folder:
            with Started(folder, MESHD_TOKEN="secret", MESHD_URL="http://127.0.0.1:1") as server:
                self.assertIn("MESHD_TOKENS", server.log)  # which may have been meant

    def meshd(self, *arguments, code=0, home=None, **environment):
        done = subprocess.run([BINARY, *arguments], env={**CLEAN, **({"HOME": home} if home else {}), **environment}, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-1000:], done.stderr))
        return done.stdout if code == 0 else done.stderr

    def test_mistyped_commands_and_options_have_the_nearest_name(self):
        for arguments, said in ((["serv"], "meshd: no command 'serv'; did you mean 'serve'?"), (["serve", "--devces", "4"], "meshd serve: no option '--devces'; did you mean '--devices'?"),
                                (["put", "x.npy", "--nmae=a"], "meshd put: no option '--nmae'; did you mean '--name'?"),
                                (["jobs", "cancle", "x"], "meshd jobs: no command 'cancle'; did you mean 'cancel'?"), (["show", "a", "b"], "meshd show: 'b' was not expected"),
                                (["get"], "name is required"), (["jobs", "--state", "runing"], "running"), ([], "required")):
            self.assertIn(said, self.meshd(*arguments, code=64))
        self.assertIn("--devices", self.meshd("help", "serve"))
        self.assertIn("cancel", self.meshd("jobs", "--help"))

    def test_tls_needs_both_files(self):
        self.refused("--tls-cert", "cert.pem", says=["--tls-cert", "--tls-key"])

    def test_configuration_file_is_below_the_environment_and_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "meshd.toml")
            file.write_text('[serve]\ndevices = 3\nprocesses = 3\nthreads = 2\nmesh-stack = false\nmemory = "2GB"\nallowed-host = ["a.example", "b.example"]\n'
                            'log-format = "json"\nkeep-jobs-for = "7d"\n[client]\nurl = "http://h:1"\n')
            shown = self.meshd("serve", "--config", str(file), "--processes", "1", "--print-config", MESHD_THREADS="5")
            for line in ("devices = 3  # file", "processes = 1  # command line", "threads = 5  # environment", "mesh-stack = false  # file",
                         "allowed-host = ['a.example', 'b.example']  # file", "log-format = 'json'  # file", "log-level = 'info'  # default", "insecure = false  # default",
                         "# tokens is not given"):
                self.assertIn("\n" + line + "\n", shown)
            # What is printed is a file with the same meaning.
            again = pathlib.Path(folder, "again.toml")
            again.write_text(shown)
            values = lambda text: [line.split("  #")[0] for line in text.splitlines() if not line.startswith("#")]  # noqa: E731
            self.assertEqual(values(self.meshd("serve", "--config", str(again), "--print-config")), values(shown))
            with Started(folder, "--config", str(file), "--processes", "1", "--log-format", "text") as server:
                self.assertRegex(server.log, " memory .*bytes=2147483648")
                self.assertEqual(200, server.ask("GET", "/v1/devices", "a.example"))
            self.assertIn("url = 'http://h:1'  # file", self.meshd("put", "--print-config", MESHD_CONFIG=str(file)))

    def test_client_reads_its_own_configuration_file(self):
        with tempfile.TemporaryDirectory() as home:
            file = pathlib.Path(home, ".config/meshd/config.toml")
            file.parent.mkdir(parents=True)
            file.write_text('[client]\nurl = "http://127.0.0.1:1"\ntoken = "secret"\n[serve]\ndevices = 3\n')
            self.assertIn("http://127.0.0.1:1;", self.meshd("ls", code=69, home=home))
            shown = self.meshd("ls", "--print-config", home=home)
            self.assertIn("token is given by the file and not shown", shown)
            self.assertNotIn("secret", shown)
            self.assertIn("devices = 8  # default", self.meshd("serve", "--print-config", home=home))

    def test_mistakes_of_a_configuration_file_have_their_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "meshd.toml")
            for text, said in (("[serve]\n\ndevice = 3\n", ":3: serve has no option 'device'; did you mean 'devices'?"), ("[server]\n", ":1: expected the tables [serve] and [client], got 'server'; did you mean 'serve'?"),
                               ("[serve]\ndevices = 0\n", ":2: devices: "), ("[serve]\ndevices = [1]\n", ":2: devices: expected a text, a number or a boolean"),
                               ("[serve]\ndevices 3\n", ":2: "), ("[serve]\nlog-level = 'loud'\n", "loud"), ("[serve]\nmesh-stack = 'perhaps'\n", ":2: mesh-stack"),
                               ("[client]\njson = true\nslice = 'x'\n", ":3: client has no option 'slice'")):
                file.write_text(text)
                shown = self.meshd("serve", "--config", str(file), "--print-config", code=64)
                self.assertIn(str(file), shown)
                self.assertIn(said, shown)
            self.assertIn("nothing.toml", self.meshd("serve", "--config", folder + "/nothing.toml", code=64))

    def test_manual_page_has_every_option_and_no_mistake(self):
        page = self.meshd("man")
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, timeout=60, env={**CLEAN, "MANWIDTH": "120", "LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("meshd put", "--keep-jobs-for", "MESHD_KEEP_JOBS_FOR", "jobs cancel", "--token-file", "69", "config.toml", "--no-mesh-stack"):
            self.assertIn(words, done.stdout)

    def complete(self, shell, line):
        """What the shell offers for the last word of a line."""
        script = self.meshd("completion", shell)
        if shell == "bash":
            words = line.split(" ")
            script += f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _meshd; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            command = ["bash", "-c", script]
        else:
            command = ["fish", "--no-config", "-c", f"{script}\ncomplete -C '{line}'"]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "data.npy").touch()
            pathlib.Path(folder, "sub").mkdir()
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, env={**CLEAN, "HOME": folder})
        self.assertEqual(done.stderr, "")
        return {each.split("\t")[0] for each in done.stdout.splitlines()}

    def test_completion_in_bash_and_fish(self):
        for shell in ("bash", "fish"):
            for line, offered, not_offered in (("meshd se", {"serve", "sessions"}, {"put"}), ("meshd serve --log-l", {"--log-level"}, {"--data"}),
                                               ("meshd serve --log-level ", {"debug", "warn"}, {"--data", "serve"}), ("meshd jobs ", {"cancel", "rm"}, {"serve"}),
                                               ("meshd put --na", {"--name"}, set()), ("meshd put d", {"data.npy"}, set()), ("meshd serve --data ", {"sub" if shell == "bash" else "sub/"}, {"data.npy"}),
                                               ("meshd tokens a", {"adopt"}, {"hash"}), ("meshd completion ", {"fish"} if shell == "zsh" else set(), {"data.npy"})):
                got = self.complete(shell, line)
                self.assertLessEqual(offered, got, (shell, line))
                self.assertFalse(not_offered & got, (shell, line, got))

    def test_completion_in_zsh(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "_meshd").write_text(self.meshd("completion", "zsh"))
            # In a terminal of its own, as completion needs the line editor.
            script = f"""zmodload zsh/zpty; zpty z 'PS1=READY; zsh -f -i'
                await() {{ local got; repeat 600; do zpty -r -t z chunk && got+=$chunk; [[ $got == *$1* ]] && {{ text=$got; return 0; }}; sleep 0.05; done; print -r -- "no $1: $got"; exit 1; }}
                zpty -w z 'PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {folder}/dump; zstyle ":completion:*" list-prompt ""; LISTMAX=0; print AFTER""INIT'
                await AFTERINIT
                zpty -w -n z $'meshd serve --log-level \t'; await debug; zpty -w -n z $'\x15meshd jobs \t'; await cancel; zpty -w -n z $'\x15meshd se\t'; await sessions
                print -r -- DONE"""
            done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=120, env={**CLEAN, "HOME": folder, "TERM": "xterm"})
            self.assertIn("DONE", done.stdout, done.stdout + done.stderr)

    def test_other_commands_ignore_the_environment_of_a_server(self):
        done = subprocess.run([BINARY, "--version"], env={**CLEAN, "MESHD_LOGLEVEL": "x"}, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
