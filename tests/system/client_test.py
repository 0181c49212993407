"""The commands of the client against a server: client_test.py BINARY. Each is typed as a person types it."""
import json
import os
import pathlib
import pty
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

from server import SPIN, Meshd, free_port, until

BINARY = os.path.abspath(sys.argv[1])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MESHD_")}
MATMUL = """func.func @main(%a: tensor<4x2xf32>, %b: tensor<2x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
"""


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Meshd(BINARY, "--devices", "8")
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="meshd-client-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.prefix = self.id().rsplit(".", 1)[1] + "/"  # of names: the tests share a server

    def run_binary(self, *arguments, stdin=b"", url=None, **environment):
        return subprocess.run([BINARY, *map(str, arguments)], input=stdin, cwd=self.folder, capture_output=True, timeout=120,
                              env={**CLEAN, "HOME": str(self.folder), "MESHD_URL": url or self.server.url, **environment})

    def meshd(self, *arguments, code=0, **more):
        """What it prints. Fails where the exit code is another one."""
        done = self.run_binary(*arguments, **more)
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-2000:], done.stderr[-2000:]))
        return done.stdout if code == 0 else done.stderr.decode()

    def text(self, *arguments, **more):
        return self.meshd(*arguments, **more).decode()

    def json(self, *arguments, **more):
        return json.loads(self.meshd(*arguments, "--json", **more))

    def save(self, name, array):
        np.save(self.folder / name, array)
        return np.asarray(array)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    # Arrays.

    def test_npy_both_ways_on_a_mesh(self):
        name = self.prefix + "digits"
        rows = self.save("digits.npy", np.arange(7 * 6, dtype=np.float32).reshape(7, 6))
        said = self.text("put", "digits.npy", "--name", name, "--mesh", "4x2:x,y", "--spec", "x,")
        self.assertIn(f"{name}  float32[7,6]", said)
        array = self.json("show", name)
        self.assertEqual((array["sharding"]["spec"], array["shard_shape"], array["unique"]), ([["x"], []], [2, 6], True))
        self.meshd("get", name, "-o", "out.npy")
        np.testing.assert_array_equal(np.load(self.folder / "out.npy"), rows)
        self.assertEqual(sorted(os.listdir(self.folder)), ["digits.npy", "out.npy"])  # nothing partial is left
        os.chmod(self.folder / "out.npy", 0o600)
        self.meshd("get", name, "-o", "out.npy")
        self.assertEqual((self.folder / "out.npy").stat().st_mode & 0o777, 0o600, "what was for its owner alone stays so")
        self.assertEqual(self.text("get", name, "--slice", "0:2,0:3"), "[[0.0 1.0 2.0]\n [6.0 7.0 8.0]]\n")
        self.assertEqual(self.json("get", name, "--slice", "0:2,0:3")["data"], [[0, 1, 2], [6, 7, 8]])
        self.assertEqual(self.meshd("get", name, "-o", "-", "--format", "raw"), rows.tobytes())
        self.assertIn("| 0,1 |", self.text("show", name))

    def test_values_of_a_large_array_are_its_ends(self):
        self.save("x.npy", np.arange(100 * 50, dtype=np.int32).reshape(100, 50))
        self.meshd("put", "x.npy", "--name", self.prefix + "x")
        self.assertEqual(self.text("get", self.prefix + "x").splitlines()[3:5], [" ...", " [4850 4851 4852 ... 4897 4898 4899]"])

    def test_stdin_and_stdout(self):
        name = self.prefix + "x"
        for size in (10, 3_000_000):  # at once, and in parts
            rows = np.arange(size, dtype=np.float32)
            self.meshd("put", "-", "--name", name, "--dtype", "float32", "--shape", size, "--replace", stdin=rows.tobytes())
            self.assertEqual(self.meshd("get", name, "-o", "-", "--format", "raw"), rows.tobytes())
            npy = self.meshd("get", name, "-o", "-")
            self.meshd("put", "-", "--name", name + "2", "--replace", stdin=npy)
            self.assertEqual(self.meshd("get", name + "2", "-o", "-"), npy)

    def test_archives(self):
        np.savez(self.folder / "two.npz", a=np.eye(2, dtype=np.float32), b=np.arange(3))
        self.meshd("put", "two.npz", "--name", self.prefix)
        for file in ("all.safetensors", "all.npz"):
            self.meshd("get", self.prefix, "-o", file)
        both = np.load(self.folder / "all.npz")
        self.assertEqual((sorted(both.files), both["b"].tolist()), (["a", "b"], [0, 1, 2]))
        self.meshd("put", "all.safetensors", "--name", self.prefix, "--replace", "--mesh", "2:x", "--spec-for", "a=x,")
        self.assertEqual(self.json("show", self.prefix + "a")["shard_shape"], [1, 2])
        self.assertEqual(self.text("get", self.prefix + "a"), "[[1.0 0.0]\n [0.0 1.0]]\n")
        self.meshd("get", self.prefix + "a", self.prefix + "b", "-o", "chosen.npz")
        self.assertEqual(np.load(self.folder / "chosen.npz")[self.prefix + "b"].tolist(), [0, 1, 2])
        self.assertIn("-o FILE", self.meshd("get", self.prefix, code=64))

    def test_several_files_are_called_by_their_names(self):
        for name in ("a", "b"):
            self.save(name + ".npy", np.float32(1))
        self.meshd("put", "a.npy", "b.npy", "--name", self.prefix)
        self.assertEqual([each["name"] for each in self.json("ls", self.prefix)["items"]], [self.prefix + "a", self.prefix + "b"])
        self.assertIn("several files", self.meshd("put", "a.npy", "b.npy", "--name", "one", code=64))

    def test_names_that_are_taken(self):
        name = self.prefix + "x"
        self.save("x.npy", np.zeros(4, np.float32))
        self.save("y.npy", np.zeros((2, 2), np.float32))
        self.meshd("put", "x.npy", "--name", name, "--replace")  # of nothing
        self.assertEqual(self.json("put", "x.npy", "--name", name)["version"], 2)
        self.assertIn(name, self.meshd("put", "y.npy", "--name", name, code=1))
        self.meshd("put", "x.npy", "--name", name, "--new", code=1)
        self.meshd("put", "y.npy", "--name", name, "--replace")
        self.assertEqual(self.json("show", name)["shape"], [2, 2])
        self.save("row.npy", np.full((1, 2), 5, np.float32))
        self.meshd("put", "row.npy", "--name", name, "--slice", "1:2")
        self.assertEqual(self.text("get", name), "[[0.0 0.0]\n [5.0 5.0]]\n")

    def test_ls_and_rm(self):
        self.save("x.npy", np.zeros(4, np.float32))
        for name in ("a/x", "a/y", "ab"):
            self.meshd("put", "x.npy", "--name", self.prefix + name)
        listed = self.text("ls", self.prefix + "a/")
        self.assertRegex(listed, rf"^NAME +TYPE +SIZE +SPEC +STATE +ID\n{self.prefix}a/x +float32\[4\] +16 B +\w+ +arr_")
        self.meshd("rm", self.prefix + "a", "--recursive")
        self.assertEqual([each["name"] for each in self.json("ls", self.prefix)["items"]], [self.prefix + "ab"])
        self.meshd("rm", self.prefix + "ab")
        self.assertIn("not_found", self.meshd("rm", self.prefix + "ab", code=1))
        self.meshd("rm", "-f", self.prefix + "ab")
        self.assertIn("--recursive", self.meshd("rm", self.prefix, code=64))
        self.assertEqual(self.text("ls", self.prefix), "")

    def test_files_that_are_none(self):
        self.write("x.txt", "1 2 3")
        self.assertIn("--dtype and --shape", self.meshd("put", "x.txt", code=66))
        (self.folder / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.assertIn("HDF5", self.meshd("put", "x.h5", code=66))
        self.assertIn("No such file", self.meshd("put", "nothing.npy", code=66))
        self.save("x.npy", np.zeros(4, np.float32))
        self.meshd("put", "x.npy", "--name", self.prefix + "x")
        self.assertIn("cannot be written", self.meshd("get", self.prefix + "x", "-o", "no/folder.npy", code=74))

    def test_large_files_are_refused_before_they_are_sent(self):
        self.save("x.npy", np.zeros(1_000_000, np.float32))
        said = self.meshd("put", "x.npy", "--mesh", "mesh_" + "0" * 32, "--spec", "x", code=1)
        self.assertIn("mesh", said)

    def test_memory_stays_small(self):
        size = 96 << 20
        with open(self.folder / "large.bin", "wb") as file:
            file.truncate(size)
        name = self.prefix + "large"
        for arguments in (["put", "large.bin", "--name", name, "--dtype", "uint8", "--shape", size], ["get", name, "-o", "back.bin"]):
            script = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            done = subprocess.run([sys.executable, "-c", script, BINARY, *map(str, arguments), "-q"], cwd=self.folder, capture_output=True, text=True,
                                  env={**CLEAN, "MESHD_URL": self.server.url}, timeout=300)
            code, kilobytes = map(int, done.stdout.split()[-2:])
            self.assertEqual(code, 0, done.stderr)
            if "HAS_SANITIZER" not in os.environ:  # which has memory of its own
                self.assertLess(kilobytes, 64 << 10)
        self.assertEqual((self.folder / "back.bin").stat().st_size, size)
        self.meshd("rm", name)

    # Programs.

    def test_run_by_the_kind_of_file(self):
        a = self.save("a.npy", np.arange(8, dtype=np.float32).reshape(4, 2))
        self.write("f.py", "def f(x, n):\n    log(\"n is {}\", n)\n    return x * n\n")
        self.write("f.mlir", MATMUL)
        done = self.run_binary("run", "f.py", "a.npy", "2")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"[[0.0 2.0]\n [4.0 6.0]\n [8.0 10.0]\n [12.0 14.0]]\n", b"n is 2\n"))
        self.meshd("run", "f.py", "a.npy", "2", "-o", "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), a * 2)
        self.meshd("run", "f.mlir", "a.npy", "[[0, 1], [1, 0]]", "-o", "y.npz", "--mesh", "4:x", "--in", "x,", "--in", "-")
        np.testing.assert_array_equal(np.load(self.folder / "y.npz")["0"], a[:, ::-1])
        self.meshd("put", "a.npy", "--name", self.prefix + "a")
        npy = self.meshd("run", "-", f"array:{self.prefix}a", "3", "-o", "-", stdin=b"def f(x, n): return x + n")
        self.assertIn((a + 3).tobytes(), npy)
        np.savez(self.folder / "two.npz", a=a, b=a + 1)
        self.assertEqual(self.json("run", "f.py", "two.npz#b", "1")["results"][0]["data"], (a + 1).tolist())
        self.assertIn("'nothing'", self.meshd("run", "f.py", "nothing", "1", code=66))

    def test_results_are_stored_under_names(self):
        self.write("f.py", "def f(x): return x + 1, x * 2")
        first, second = self.prefix + "one", self.prefix + "two"
        self.assertEqual(self.text("run", "f.py", "[1, 2]", "--name", first, "--name", second), f"{first}  int32[2]\n{second}  int32[2]\n")
        self.assertEqual(self.text("get", second), "[2 4]\n")

    def test_mistakes_of_a_program_are_shown_in_it(self):
        self.write("f.mlir", MATMUL.replace("dot_general", "dot_genral"))
        said = self.meshd("run", "f.mlir", "1", "2", code=1)
        self.assertIn("line 2, column", said)
        self.assertRegex(said, r"\n    \|   %0 = stablehlo\.dot_genral.*\n    \| +\^\n")
        self.assertIn("hint: ", said)
        document = json.loads(self.meshd("run", "f.mlir", "1", "2", "--json", code=1))
        self.assertEqual(document["errors"][0]["line"], 2)

    def test_explain(self):
        self.write("f.mlir", MATMUL)
        said = self.text("explain", "f.mlir", "--mesh", "2048x2:x,y", "--in", ",x")
        self.assertIn("all_reduce", said.replace("-", "_"))
        self.assertIn("mesh", self.json("explain", "f.mlir", "--mesh", "4:x", "--in", "x,").__str__())
        self.write("f.py", "def f(x): return x @ x.T")
        self.assertIn("dot_general", self.text("explain", "f.py", "float32[8,2]", "--mesh", "4:x", "--in", "x,"))
        self.assertIn("func.func", self.text("explain", "f.mlir", "--view", "partition", "--mesh", "4:x", "--in", "x,"))
        self.assertTrue(self.text("explain", "f.mlir", "--view", "svg").startswith("<svg"))

    def test_programs(self):
        self.write("f.mlir", MATMUL.replace("%0", "%product"))  # programs are named by their content: one of its own
        program = self.text("programs", "put", "f.mlir", "-n", "product").strip()
        self.assertRegex(self.text("programs"), rf"{program} +product +stablehlo +20")
        self.assertIn("stablehlo.dot_general", self.text("programs", "show", program))
        self.assertEqual(self.text("run", program, "[[1,2],[3,4],[5,6],[7,8]]", "[[1,0],[0,1]]").split("\n")[0], "[[1.0 2.0]")
        self.meshd("programs", "rm", program)
        self.meshd("programs", "show", program, code=1)

    # Sessions and jobs.

    def slow_job(self, *arguments):
        self.write("spin.mlir", SPIN)
        return self.text("run", "spin.mlir", "1000000000", "--async", *arguments).strip()

    def test_sessions(self):
        session = self.text("sessions", "new", "--name", "mine", "--effects", "streaming").strip()
        self.assertRegex(self.text("sessions"), rf"{session} +mine +open")
        self.assertIn("state: open", self.text("sessions", "show", session))
        self.meshd("sessions", "close", session)
        self.assertIn("not_found", self.meshd("sessions", "show", session, code=1))

    def test_jobs(self):
        session = self.text("sessions", "new").strip()
        job = self.slow_job("--session", session)
        until(lambda: job in self.text("jobs", "--state", "running"), "the job runs")
        self.meshd("jobs", "rm", job, code=1)
        self.meshd("jobs", "cancel", job)
        until(lambda: job in self.text("jobs", "--state", "cancelled", "--session", session), "the job is cancelled")
        self.assertIn("already", self.meshd("jobs", "cancel", job, code=1))
        self.meshd("watch", job, code=2)
        self.meshd("jobs", "rm", job)
        self.meshd("jobs", "show", job, code=1)

    def test_watch_follows_a_job_to_its_end(self):
        session = self.text("sessions", "new", "--effects", "streaming").strip()
        self.write("f.py", "def f(x):\n  for i in range(300):\n    log(\"x {} {}\", i, x)\n    x = x + 1\n  return x")
        self.write("other.py", "def f(x):\n  log(\"other {}\", x)\n  return x")
        self.meshd("run", "other.py", "1", "--session", session)
        job = self.text("run", "f.py", "0", "--async", "--session", session).strip()
        done = self.run_binary("watch", job)
        self.assertEqual((done.returncode, done.stdout.decode().splitlines(), done.stderr), (0, [f"x {i} {i}" for i in range(300)], b"done\n"))
        lines = [json.loads(line) for line in self.text("watch", job, "--json").splitlines()]
        self.assertEqual(([line["sequence"] for line in lines[:-1]], lines[-1]["state"]), (list(range(2, 302)), "done"))
        self.assertIn("failed", self.meshd("watch", self.slow_job("--deadline", "0.2"), code=1))

    def test_watch_of_a_session_resumes(self):
        session = self.text("sessions", "new").strip()
        self.write("f.py", "def f(x):\n  log(\"x is {}\", x)\n  return x")
        proxy = Cutting(self.server.port)
        self.addCleanup(proxy.close)
        watcher = subprocess.Popen([BINARY, "watch", session, "--url", proxy.url], stdout=subprocess.PIPE, text=True, env={**CLEAN, "HOME": str(self.folder)})
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        until(lambda: proxy.streams, "the stream is open")
        for i in range(6):
            self.meshd("run", "f.py", str(i), "--session", session)
            self.assertEqual(watcher.stdout.readline(), f"x is {i}\n")
            proxy.cut()
        self.meshd("sessions", "close", session)
        self.assertEqual((watcher.wait(100), watcher.stdout.read()), (0, ""))
        watcher.stdout.close()

    def test_uploads_and_downloads_resume(self):
        rows = self.save("x.npy", np.arange(8_000_000, dtype=np.float32))
        name = self.prefix + "x"
        proxy = Cutting(self.server.port, most=5_000_000)
        self.addCleanup(proxy.close)
        self.meshd("put", "x.npy", "--name", name, url=proxy.url)
        self.assertGreater(proxy.cuts, 2)
        self.meshd("get", name, "-o", "back.npy", url=proxy.url)
        np.testing.assert_array_equal(np.load(self.folder / "back.npy"), rows)
        np.testing.assert_array_equal(np.frombuffer(self.meshd("get", name, "-o", "-", "--format", "raw"), np.float32), rows)

    def test_uploads_and_downloads_outlive_answers_of_503(self):
        """A server that is ending or full, asked to go on."""
        rows = self.save("x.npy", np.arange(8_000_000, dtype=np.float32))
        name = self.prefix + "x"
        proxy = Cutting(self.server.port, most=5_000_000, is_full_behind_cuts=True)
        self.addCleanup(proxy.close)
        self.meshd("put", "x.npy", "--name", name, url=proxy.url)
        self.assertGreater(proxy.refusals, 2)
        before = proxy.refusals
        self.meshd("get", name, "-o", "back.npy", url=proxy.url)
        self.assertGreater(proxy.refusals, before + 2)
        np.testing.assert_array_equal(np.load(self.folder / "back.npy"), rows)

    # The rest.

    def test_meshes_devices_info_version(self):
        mesh = self.text("meshes", "put", "2x4:a,b").strip()
        self.assertRegex(self.text("meshes"), rf"{mesh} +2x4:a,b +0,1,2,3,4,5,6,7")
        self.meshd("meshes", "rm", mesh)
        self.assertEqual(len(self.json("devices")["items"]), 8)
        self.assertIn("8 devices", self.text("info"))
        self.assertRegex(self.text("version"), r"^client: [\d.]+\nserver: [\d.]+ at http")
        self.assertIn("server: none", self.text("version", url="http://127.0.0.1:1"))
        self.assertIn("4x2:x,y", self.meshd("meshes", "put", "4x2:x", code=64))

    def test_no_server(self):
        self.assertIn("--url", self.meshd("ls", url="http://127.0.0.1:1", code=69))
        self.assertIn("no address", self.meshd("ls", url="http://", code=64))

    def on_terminal(self, *arguments, shown):
        """What it prints to a terminal that is its `shown`, "stdout" or "stderr"."""
        leader, follower = pty.openpty()
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, shown: follower}
        process = subprocess.Popen([BINARY, *arguments], cwd=self.folder, env={**CLEAN, "MESHD_URL": self.server.url}, **streams)
        os.close(follower)
        said = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        os.close(leader)
        self.assertEqual(process.wait(60), 0)
        return said

    def test_texts_of_the_server_do_not_rule_a_terminal(self):
        name = self.prefix + "x\u009b2J"
        self.save("x.npy", np.zeros(2, np.float32))
        self.meshd("put", "x.npy", "--name", name)
        self.assertIn(rb"x\u009b2J", self.on_terminal("ls", self.prefix, shown="stdout"))

    def test_progress_is_shown_on_a_terminal_alone(self):
        self.save("x.npy", np.zeros(4_000_000, np.float32))
        self.assertEqual(self.run_binary("put", "x.npy", "--name", self.prefix + "x").stderr, b"")
        said = self.on_terminal("put", "x.npy", "--name", self.prefix + "x", shown="stderr")
        self.assertRegex(said, rb"x\.npy  \[#* *\] +\d+%  [\d.]+ \w+/15\.3 MiB  ")
        self.assertTrue(said.endswith(b"\r\x1b[K"), said[-100:])  # erased

    def test_a_token_file_that_others_can_read_is_warned_of_once(self):
        token = self.write("open-token", "secret\n")
        for mode, warnings in ((0o644, 1), (0o640, 1), (0o604, 1), (0o600, 0), (0o400, 0)):
            os.chmod(self.folder / token, mode)
            done = self.run_binary("info", "--token-file", token)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(b"chmod 600 open-token"), warnings, (oct(mode), done.stderr))
            self.assertNotIn(b"secret", done.stderr)
        # Where the file is not what the token is from, and where standard error is documents alone, nothing is said.
        os.chmod(self.folder / token, 0o644)
        for more in (["--token", "other"], ["--json"]):
            self.assertEqual(self.run_binary("info", "--token-file", token, *more).stderr, b"", more)
        self.assertEqual(self.run_binary("info", MESHD_TOKEN_FILE=token).stderr.count(b"chmod 600"), 1)

    def test_tokens_tls_backup(self):
        certificate, key, tokens = (str(self.folder / name) for name in ("cert.pem", "key.pem", "tokens"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        pathlib.Path(tokens).write_text("ann secret\nroot rootsecret admin\n")
        os.chmod(tokens, 0o600)
        port = free_port()
        data = self.folder / "data"
        server = subprocess.Popen([BINARY, "serve", "--listen", f"127.0.0.1:{port}", "--data", data, "--tokens", tokens, "--tls-cert", certificate,
                                   "--tls-key", key, "--log-level", "warn"], env=CLEAN)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        url = f"https://127.0.0.1:{port}"
        until(lambda: self.run_binary("health", url, "--ca", certificate).returncode == 0, "the server is ready")
        self.assertIn("--ca", self.meshd("ls", url=url, code=69))
        self.assertIn("token", self.meshd("ls", "--ca", certificate, url=url, code=77))
        self.write("token", "secret\n")
        self.assertIn("principal: ann", self.text("info", "--ca", certificate, url=url, MESHD_TOKEN="secret"))
        self.assertIn("principal: ann", self.text("info", "--ca", certificate, "--token-file", "token", url=url))
        self.assertIn("principal: root", self.text("info", "--ca", certificate, "--token", "rootsecret", "--token-file", "token", url=url))
        self.assertIn("admin", self.meshd("backup", "monday", "--ca", certificate, "--token", "secret", url=url, code=77))
        self.assertIn("monday", self.text("backup", "monday", "--ca", certificate, "--token", "rootsecret", url=url))
        self.assertTrue((data / "backups" / "monday").is_dir())


class Cutting:
    """A proxy that cuts connections: when told, or each after `most` bytes in one direction. Full behind cuts, it
    refuses the request that comes next."""

    def __init__(self, port, most=None, is_full_behind_cuts=False):
        self.port, self.most, self.cuts, self.streams = port, most, 0, []
        self.is_full_behind_cuts, self.refusals = is_full_behind_cuts, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_full_behind_cuts and self.refusals < self.cuts:
                self.refusals += 1
                threading.Thread(target=self.refuse, args=(client,), daemon=True).start()
                continue
            upstream = socket.create_connection(("127.0.0.1", self.port))
            pair = (client, upstream)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self.copy, args=(source, sink, pair), daemon=True).start()

    @staticmethod
    def refuse(client):
        with client:
            client.recv(1 << 16)
            client.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def copy(self, source, sink, pair):
        count = 0
        try:
            while True:
                piece = source.recv(1 << 16)
                if not piece:
                    break
                if b"/events HTTP" in piece:
                    self.streams.append(pair)
                sink.sendall(piece)
                count += len(piece)
                if self.most and count > self.most:
                    self.cuts += 1
                    break
        except OSError:
            pass
        self.end(pair)

    @staticmethod
    def end(pair):
        for each in pair:
            try:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset: what was sent and not read is lost
                each.shutdown(socket.SHUT_RD)  # wakes whoever reads
                each.close()
            except OSError:
                pass  # by the other direction's thread

    def cut(self):
        """Ends the streams that are open; waits until the client has opened another."""
        cut, self.streams = self.streams, []
        for pair in cut:
            self.end(pair)
        until(lambda: self.streams, "the stream is opened again")

    def close(self):
        self.listener.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
