"""Makes histories of a real server under faults, and checks them."""
import json
import random
import signal
import sys
import pathlib
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from checker import check  # noqa: E402
from server import Meshd, ok, until  # noqa: E402
from workload import Client, Lost, Observer, Run, Unsent, entries_of, read  # noqa: E402


class Nemesis:
    """Kills, pauses and restarts the server and drops connections, at random, until it is told to stop."""

    def __init__(self, run):
        self.run, self.rng = run, random.Random(run.seed)
        self.counts = {"kill": 0, "drop": 0, "pause": 0, "restart": 0}
        self.over = threading.Event()

    def work(self):
        while not self.over.wait(self.rng.uniform(0.03, 0.3)):
            fault = self.rng.choices(list(self.counts), [6, 5, 2, 0.5])[0]
            self.counts[fault] += 1
            noted = self.run.note({"kind": fault, "client": "nemesis", "begin": time.monotonic(), "end": None})
            getattr(self, fault)()
            noted["end"] = time.monotonic()

    def kill(self):
        self.run.server.stop(signal.SIGKILL)
        self.run.server.start()

    def restart(self):
        code = self.run.server.stop()
        self.run.server.start()
        assert code == 0, f"SIGTERM ended the server with {code}"

    def pause(self):
        self.run.server.process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.05, 0.4))
        self.run.server.process.send_signal(signal.SIGCONT)

    def drop(self):
        self.run.sockets.drop(0.5, self.rng)


def pages(server, path):
    found, cursor = [], ""
    while cursor is not None:
        document = ok(server.ask("GET", path + cursor))
        found += document["items"]
        cursor = document["next"]
        if cursor is not None:
            cursor = f"&{'after' if '/effects' in path else 'cursor'}={cursor}"
    return found


def make(binary, seed, sessions, count, environment=None):
    """One history of `sessions` clients with `count` operations each: (history, how often each fault)."""
    launcher = ["env", *(f"{name}={value}" for name, value in (environment or {}).items())] if environment else []
    with Meshd(binary, "--devices", "4", "--drain-timeout", "1", "--log-level", "err", launcher=launcher) as server:
        names = [ok(server.ask("POST", "/v1/sessions"), 201)["id"] for _ in range(sessions)]
        run = Run(server, names, seed)
        nemesis = Nemesis(run)
        clients = [run.guard(Client(run, number, count).work) for number in range(sessions)]
        observers = [Observer(run, 100 + number, name) for number, name in enumerate(names)]
        listeners = [run.guard(observer.listen) for observer in observers]
        trouble = run.guard(nemesis.work)
        for thread in [*clients, *listeners, trouble]:
            thread.start()
        for thread in clients:
            thread.join()
        nemesis.over.set()
        trouble.join()
        if not run.failures:
            history = finish(run, observers)
        run.stopping.set()
        for observer in observers:
            observer.close()
        for thread in listeners:
            thread.join()
        if run.failures:
            raise RuntimeError("; ".join(run.failures))
        server.stop(signal.SIGKILL)
    return history, nemesis.counts


def finish(run, observers):
    """Waits for all jobs, reads everything, and lets the listeners see the end."""
    server = run.server
    for name in run.sessions:
        until(lambda: server.ask("POST", f"/v1/sessions/{name}/barrier")[0] == 200, "the barrier of a session", 60)
    for array in dict.fromkeys([*run.cells, *run.handles]):
        read(run, -1, array)
    logs = {name: entries_of(pages(server, f"/v1/sessions/{name}/effects?limit=1000")) for name in run.sessions}
    jobs = {name: [{key: row[key] for key in ("id", "number", "state")} for row in pages(server, f"/v1/sessions/{name}/jobs?limit=1000")] for name in run.sessions}
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(observer.last < len(logs[observer.session]) for observer in observers):
        time.sleep(0.01)
    return {"operations": run.operations, "logs": logs, "jobs": jobs}


def checked(binary, seed, sessions, count, environment=None, keep=None):
    """What is wrong with one history; a wrong one is written to the file `keep`."""
    history, faults = make(binary, seed, sessions, count, environment)
    wrong = check(history)
    if wrong and keep:
        keep.write_text(json.dumps(history, indent=1, default=str))
    return wrong, history, faults
