"""Makes histories of a real server under faults, and checks them."""
import json
import random
import signal
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from checker import check  # noqa: E402
from server import Meshd, ok, tell_not_tried, until  # noqa: E402
from shim import FATAL, YEAR, Faults  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from workload import Client, Lost, Observer, Run, Unsent, entries_of, read  # noqa: E402


DISK = 120  # MiB for the data of every other history


class Nemesis:
    """Kills, pauses and restarts the server and drops connections; fills its disk, where it has a small one; breaks syncs and sets the clock, where there
    are faults of a shim. At random, until it is told to stop."""
    WEIGHTS = {"kill": 6, "drop": 5, "pause": 2, "restart": 0.5}
    OF_DISK = {"full_disk": 2}
    OF_SHIM = {"broken_sync": 1.5, "clock": 2}

    def __init__(self, run, disk, shim=None):
        self.run, self.rng, self.disk, self.shim = run, random.Random(run.seed), disk, shim
        self.weights = {**self.WEIGHTS, **(self.OF_DISK if disk.folder else {}), **(self.OF_SHIM if shim else {})}
        self.counts = dict.fromkeys(self.weights, 0)
        self.seconds = 0  # that the clock is wrong by
        self.over = threading.Event()

    def work(self):
        # A small disk is in memory, and its syncs take no time: clients are through sooner.
        most = 0.1 if self.disk.folder else 0.3
        while not self.over.wait(self.rng.uniform(0.03, most)):
            fault = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
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

    def full_disk(self):
        self.disk.fill()
        time.sleep(self.rng.uniform(0.05, 0.5))
        self.disk.empty()

    def broken_sync(self):
        """Of the next syncs one fails and all behind it, which ends the server; where nobody writes meanwhile there is none to fail."""
        before = self.shim.hits()
        self.shim.set(clock=self.seconds, failing_sync=self.rng.randrange(1, 12))
        deadline = time.monotonic() + 2
        while self.shim.hits() == before and time.monotonic() < deadline:
            time.sleep(0.01)
        self.shim.set(clock=self.seconds, failing_sync=1)
        if self.shim.hits() > before:
            code = self.run.server.process.wait(60)
            self.shim.set(clock=self.seconds)
            assert code == FATAL, f"a sync has failed, and the server has ended with {code}"
            self.run.server.start()
        else:
            self.kill_in_time()

    def kill_in_time(self):
        """Of the kill and a sync that fails after all, either ends the server."""
        process = self.run.server.process
        process.kill()
        code = process.wait(60)
        self.shim.set(clock=self.seconds)
        assert code in (FATAL, -signal.SIGKILL), f"the server has ended by itself with {code}"
        self.run.server.start()

    def clock(self):
        self.seconds = self.rng.choice([0, 10 * YEAR, -10 * YEAR, self.rng.uniform(-60, 60)])
        self.shim.set(clock=self.seconds)

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


def make(binary, seed, sessions, count, environment=None, shim=None):
    """One history of `sessions` clients with `count` operations each: (history, how often each fault). With the library of the fault shim there are more
    kinds of them."""
    faults = Faults(shim) if shim else None
    launcher = ["env", *(f"{name}={value}" for name, value in (environment or {}).items())] if environment else []
    launcher += faults.launcher() if faults else []
    # A file for its log: a full disk is an error line for each request.
    with SmallDisk(DISK if seed % 2 else 0) as disk, tempfile.TemporaryFile() as log, \
            Meshd(binary, "--devices", "4", "--drain-timeout", "1", "--log-level", "err", data=disk.folder, log=log, launcher=launcher) as server:
        if seed % 2 and disk.folder is None:
            tell_not_tried("a disk that is full: mounting is not allowed here")
        names = [ok(server.ask("POST", "/v1/sessions"), 201)["id"] for _ in range(sessions)]
        run = Run(server, names, seed)
        nemesis = Nemesis(run, disk, faults)
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


def checked(binary, seed, sessions, count, environment=None, keep=None, shim=None):
    """What is wrong with one history; a wrong one is written to the file `keep`."""
    history, faults = make(binary, seed, sessions, count, environment, shim)
    wrong = check(history)
    if wrong and keep:
        keep.write_text(json.dumps(history, indent=1, default=str))
    return wrong, history, faults
