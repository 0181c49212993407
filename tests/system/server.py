"""A meshd of its own for a test: started on a free port with an empty data folder, stopped at the end."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from ports import free_port, is_free  # noqa: E402

# Exit codes of a process that a defect has ended. No test sends these signals to a server that it expects to go on.
CRASHES = tuple(-number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL))


class Meshd:
    """`with Meshd(binary) as server: server.ask(...)`. The data folder stays over restart() and goes with the object."""

    def __init__(self, binary, *arguments, data=None, log=None, launcher=()):
        self.binary, self.arguments, self.launcher = str(binary), list(arguments), list(launcher)
        self.folder = data or tempfile.mkdtemp(prefix="meshd-test-")
        self.owns_folder = data is None
        self.log = log  # a file for its log; else the test's own stderr
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, failure=None, *_):
        if failure is None and self.process.poll() in CRASHES:
            raise AssertionError(self.ended_by_itself())
        self.stop()
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, on_not_ready=lambda: None, ready="/readyz"):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([*self.launcher, self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.folder + "/data",
                                         *([] if "--log-level" in self.arguments else ["--log-level", "warn"]), *self.arguments], stderr=self.log)
        deadline = time.time() + 60
        while time.time() < deadline:
            if self.process.poll() is not None:
                taken = "" if is_free("127.0.0.1", self.port) else f"; somebody else has port {self.port}"
                raise RuntimeError(f"meshd ended with {self.process.returncode} before it was ready{taken}; the end of its log: {self.end_of_log()}")
            try:
                if self.ask("GET", ready)[0] == 200:
                    return
                on_not_ready()
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError("meshd did not get ready")

    def stop(self, how=signal.SIGTERM):
        """The exit code. With SIGKILL it is this signal that ends the server: one that has ended by itself, before or meanwhile, is a failure, which
        those who were cut off from it cannot tell from the kill."""
        if how == signal.SIGKILL:
            self.kill()
        elif self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode if self.process else None

    def kill(self):
        self.assert_runs()
        self.process.kill()
        assert self.process.wait(60) == -signal.SIGKILL, self.ended_by_itself()

    def assert_runs(self):
        assert self.process.poll() is None, self.ended_by_itself()

    def ended_by_itself(self):
        return f"the server has ended by itself with {self.process.returncode}; the end of its log: {self.end_of_log()}"

    def end_of_log(self):
        if self.log is None:
            return "among what this test has printed"
        if isinstance(self.log, int) or not stat.S_ISREG(os.fstat(self.log.fileno()).st_mode):
            return "not kept"
        return pathlib.Path(f"/proc/self/fd/{self.log.fileno()}").read_bytes()[-4000:].decode(errors="replace")

    def ask(self, method, path, body=None, headers=None, most_parsed=1 << 40):
        """(status, headers, JSON document or bytes); a document of more than `most_parsed` bytes stays bytes"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = dict(headers or {})
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
            kind = answer.getheader("Content-Type") or ""
            return answer.status, answer.headers, json.loads(data) if "json" in kind and 0 < len(data) <= most_parsed else data
        finally:
            connection.close()


def ok(answer, status=200):
    """The document of an answer with this status."""
    assert answer[0] == status, f"expected {status}, got {answer[0]}: {answer[2]}"
    return answer[2]


def refused(answer, status, code, *words):
    """The detail of a problem with this status and code, in which all the words are."""
    assert (answer[0], answer[2].get("code")) == (status, code), f"expected {status} {code}, got {answer[0]}: {answer[2]}"
    for word in words:
        assert word in answer[2]["detail"], f"{word!r} is not in {answer[2]['detail']!r}"
    return answer[2]["detail"]


def refused_with(answer, status, *words):
    """The problem document of a refusal whose detail or errors have all the words."""
    shown = json.dumps(ok(answer, status), ensure_ascii=False)
    for word in words:
        assert json.dumps(word, ensure_ascii=False)[1:-1] in shown, f"{word!r} is not in {shown}"
    return answer[2]


SKIPPED = 77  # the exit code that CTest counts as skipped, where a test says so


def tell_not_tried(what):
    """Says what a test cannot try here. Where figures count (MESHD_LONG=1) that is a failure."""
    assert "MESHD_LONG" not in os.environ, f"not tried: {what}"
    print(f"NOT TRIED: {what}", flush=True)


def until(condition, what, seconds=30):
    """What the condition gives as soon as it is true of it."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


# Counts to %n, a microsecond an iteration, and gives that as %0: the default budget of steps (1e9) is used up after minutes.
COUNT = """  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.while(%i = %c) : tensor<i32> cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %v = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<16384xi32>
    %k = stablehlo.reduce(%v init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<16384xi32>, tensor<i32>) -> tensor<i32>
    %j = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
"""
# A run that takes as long as a test wants.
SPIN = "func.func @main(%n: tensor<i32>) -> tensor<i32> {\n" + COUNT + "  return %0 : tensor<i32>\n}"


# Logs %n in the order of its session, and gives it.
LOG = """func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<i32>) {
  %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %n) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  return %u, %n : !stablehlo.token, tensor<i32>
}"""


def logging(number, text=LOG):
    """A job that logs the number."""
    return {"program": {"text": text}, "arguments": [number], "callbacks": {"0": {"effect": "log", "name": "n"}}}


def memory_of(server, field):
    """VmRSS or VmHWM of the server, in bytes."""
    return status_of(server, field) * 1024


def status_of(server, field):
    """A number of the server's process, as the kernel's status file has it."""
    lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def run_stories(stories, always=(), options=(), log=None, teller=lambda server: server):
    """Runs all stories, or those that the command line names (and those of `always`), against one server; the exit code. `options` are
    the server's beside its eight devices, `log` is where it writes; stories are told what `teller` makes of the server."""
    failed, told = 0, 0
    with Meshd(sys.argv[1], "--devices", "8", *options, log=log) as server:
        what = teller(server)
        for story in stories:
            if sys.argv[2:] and story.__name__ not in sys.argv[2:] and story not in always:
                continue
            told += 1
            try:
                story(what)
            except Exception:
                failed += 1
                print(f"FAILED {story.__name__}")
                traceback.print_exc(file=sys.stdout)
    print(f"{told - failed} stories passed, {failed} failed")
    return 1 if failed or not told else 0
