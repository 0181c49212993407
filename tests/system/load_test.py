#!/usr/bin/env python3
"""load_test.py BINARY [mixed | overload | refusals | soak]: a server with --memory 1GB or 2GB under load.
mixed: 64 clients that upload, read, run and log, beside 1,000 idle connections, 200 event streams, 200 heads that trickle and 100
readers that do not read. overload: four times the clients that the server is at its peak with, and sixteen times, without a pause. refusals: servers that
refuse most of what comes, for its rate, for memory, for jobs that wait. soak: eight clients at 60 % of what they reach without a pause, for
long; memory, descriptors and threads stay. Nothing acknowledged is lost, nothing answers 5xx but what refuses work.
Seconds: MESHD_LONG=1 (./dev check-long) 60, 90, 60 and 180, and figures are judged; LONG=1 half an hour, 15 and six minutes and two hours, and the slopes of
memory and times too; else a few, and only answers are judged."""
import collections
import dataclasses
import http.client
import json
import os
import pathlib
import random
import socket
import sys
import threading
import time

from bystanders import Bystanders
from server import SPIN, Meshd, logging, memory_of, ok, status_of, until

BINARY = sys.argv[1]
LONG, LONGEST = "MESHD_LONG" in os.environ, os.environ.get("LONG") == "1"
RAW = {"Content-Type": "application/octet-stream"}
MIB = 1 << 20
SOAK = 0.6  # of the peak
PRESENT = 0.8  # of the bystanders that are promised, at each look: what was cut off takes a moment to come again


def seconds(short, long, longest):
    return longest if LONGEST else long if LONG else short


def spread(values):
    """(median, p99, most) in milliseconds."""
    values = sorted(values)
    if not values:
        return (0.0, 0.0, 0.0)
    return tuple(round(values[min(len(values) - 1, int(len(values) * part))] * 1000, 1) for part in (0.5, 0.99, 1))


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


JSON = {"Content-Type": "application/json"}
RUN = json.dumps({"program": {"format": "numpy", "text": "def f(x, w):\n    return jnp.tanh(x @ w).sum()"}, "arguments": [[[0.5] * 32] * 32, [[0.25] * 32] * 32]}).encode()


class Client(threading.Thread):
    """Asks one kind of thing after the other on a kept connection for some seconds, and writes down what was acknowledged. The next begins `pause`
    seconds after the last has ended, or `pace` seconds after it has begun."""

    def __init__(self, server, number, seconds_of_work, pause=0.0, pace=0.0):
        super().__init__()
        self.server, self.seconds, self.pause, self.pace = server, seconds_of_work, pause, pace
        self.random = random.Random(number)
        self.took, self.statuses, self.refusals, self.codes, self.wrong = {}, {}, [], collections.Counter(), []
        self.arrays, self.effects, self.asked = {}, 0, 0
        self.session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
        self.connection = None

    def ask(self, kind, method, path, body=None, headers=None):
        if isinstance(body, dict):
            body, headers = json.dumps(body), JSON
        self.asked += 1
        for _ in range(2):  # a kept connection may have been ended meanwhile
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
                self.connection.connect()
                self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            began = time.monotonic()
            try:
                self.connection.request(method, path, body, headers or {})
                answer = self.connection.getresponse()
                data = answer.read()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.connection.close()
                self.connection = None
        else:
            raise RuntimeError("two connections were ended")
        took = time.monotonic() - began
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        if answer.status in (429, 503):
            self.refusals.append(took)
            code = json.loads(data).get("code")
            self.codes[code] += 1
            if not code or not answer.getheader("Retry-After"):
                self.wrong.append(f"{method} {path}: {answer.status} without a code or Retry-After: {data[:300]!r}")
        elif answer.status >= 400:
            self.wrong.append(f"{method} {path}: {answer.status} {data[:300]!r}")
        else:
            self.took.setdefault(kind, []).append(took)
        return answer.status, data

    def run(self):
        kinds = [self.upload, self.download, self.compute, self.log, self.look, self.drop]
        began = time.monotonic()
        while time.monotonic() < began + self.seconds:
            try:
                self.random.choice(kinds)()
            except Exception as error:  # noqa: BLE001
                self.wrong.append(repr(error))
                return
            wait = began + self.asked * self.pace - time.monotonic() if self.pace else self.pause * self.random.uniform(0.5, 1.5)
            if wait > 0:
                time.sleep(wait)

    def upload(self):
        fill, size = self.random.randrange(256), self.random.choice((100, 10_000, 1_000_000))
        status, data = self.ask("upload", "POST", f"/v1/arrays?dtype=uint8&shape={size}", bytes([fill]) * size, RAW)
        if status == 201:
            self.arrays[json.loads(data)["id"]] = (fill, size)

    def download(self):
        if not self.arrays:
            return
        array, (fill, size) = self.random.choice(list(self.arrays.items()))
        status, data = self.ask("download", "GET", f"/v1/arrays/{array}/data", headers={"Accept": "application/octet-stream"})
        if status == 200 and data != bytes([fill]) * size:
            self.wrong.append(f"{array} has other bytes")

    def compute(self):
        self.ask("run", "POST", "/v1/run", RUN, JSON)

    def log(self):
        if self.ask("job", "POST", f"/v1/sessions/{self.session}/jobs", logging(self.effects))[0] == 200:
            self.effects += 1

    def look(self):
        self.ask("get", "GET", f"/v1/sessions/{self.session}")

    def drop(self):
        if len(self.arrays) > 4:
            array = self.random.choice(list(self.arrays))
            if self.ask("delete", "DELETE", f"/v1/arrays/{array}")[0] == 204:
                del self.arrays[array]

    def lost(self):
        """What was acknowledged and is not there."""
        out = []
        for array, (fill, size) in self.arrays.items():
            status, _, data = self.server.ask("GET", f"/v1/arrays/{array}/data", headers={"Accept": "application/octet-stream"})
            if status != 200 or data != bytes([fill]) * size:
                out.append(array)
        seen, after = [], 0
        while True:
            items = ok(self.server.ask("GET", f"/v1/sessions/{self.session}/effects?limit=1000&after={after}"))["items"]
            if not items:
                break
            seen += [item["values"][0]["data"] for item in items]
            after = items[-1]["sequence"]
        # A refused or cut off job may have logged its number once more.
        if sorted(set(seen)) != list(range(len(set(seen)))) or len(set(seen)) < self.effects:
            out.append(f"{self.session}: {len(seen)} effects, {self.effects} were acknowledged")
        return out


def sum_up(clients, name, took_seconds):
    took, statuses = {}, {}
    for client in clients:
        for kind, values in client.took.items():
            took.setdefault(kind, []).extend(values)
        for status, count in client.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    print(f"{name}: {sum(len(v) for v in took.values()) / took_seconds:.0f} answers/s; " + ", ".join(f"{n} x {s}" for s, n in sorted(statuses.items())))
    for kind, values in sorted(took.items()):
        print("  %-9s %6d, ms: median %g, p99 %g, most %g" % (kind, len(values), *spread(values)))
    wrong = [text for client in clients for text in client.wrong]
    assert not wrong, f"{len(wrong)} answers are wrong: {wrong[:5]}"
    return took


def join(clients):
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def assert_nothing_lost(clients):
    lost = [text for client in clients for text in client.lost()]
    assert not lost, f"{len(lost)} are lost: {lost[:5]}"


class Probe(threading.Thread):
    """Asks /livez and a small GET for as long as it is on; what they took, and every second how many of the bystanders the server has."""

    def __init__(self, server, others):
        super().__init__()
        self.server, self.others = server, others
        self.on, self.livez, self.small, self.peak, self.shares = True, [], [], 0, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        counted = 0
        while self.on:
            if time.monotonic() - counted > 1:
                counted = time.monotonic()
                self.shares.append(shares_of(self.server, self.others))
            for path, took in (("/livez", self.livez), ("/v1/arrays?limit=1", self.small)):
                began = time.monotonic()
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                took.append(time.monotonic() - began)
                assert answer.status == 200, answer.status
            self.peak = max(self.peak, memory_of(self.server, "VmRSS") // MIB)
            time.sleep(0.02)

    def end(self):
        self.on = False
        self.join()
        print("  /livez ms: median %g, p99 %g, most %g" % spread(self.livez))
        print("  small GET ms: median %g, p99 %g, most %g; resident at most %d MiB" % (*spread(self.small), self.peak))
        print(f"  of the bystanders there were at least, in {len(self.shares)} looks: {self.least()}")

    def least(self):
        """Of each state the least share that was there at a look."""
        return {state: round(min(share[state] for share in self.shares), 2) for state in self.others.promised}


def shares_of(server, others):
    return others.shares(ok(server.ask("GET", "/metrics")).decode())


def raise_descriptors():
    import resource
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most != resource.RLIM_INFINITY else 65536, most))


def mixed():
    """L1 of the figures to reach."""
    raise_descriptors()
    took_seconds = seconds(4, 60, 1800)
    part = 1 if LONG else 0.2
    with Meshd(BINARY, "--devices", "8", "--memory", "1GB") as server:
        session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
        big = ok(server.ask("POST", f"/v1/arrays?dtype=uint8&shape={8 * MIB}", bytes(8 * MIB), RAW), 201)["id"]
        with Bystanders(server, session, big, [int(count * part) for count in (1000, 200, 200, 100)]) as others:
            until(lambda: min(shares_of(server, others).values()) >= PRESENT, "the bystanders are there", 60)
            probe = Probe(server, others)
            probe.start()
            clients = [Client(server, number, took_seconds, 0.05) for number in range(int(64 * part))]
            join(clients)
            probe.end()
            sum_up(clients, f"mixed load of {len(clients)} clients for {took_seconds} s", took_seconds)
            print(f"  opened in all, as the server cuts them off: {others.leave()}")
        assert_nothing_lost(clients)
        if LONG:
            assert not any(client.refusals for client in clients), "it is no overload"
            assert min(probe.least().values()) >= PRESENT, "the bystanders were not there all the time"
            assert spread(probe.livez)[1] <= 50 and spread(probe.small)[1] <= 100 and probe.peak <= 512


class LargeRuns(Client):
    """A run's arguments are half a megabyte of JSON."""
    BODY = json.dumps({"program": {"format": "numpy", "text": "def f(x):\n    return x.sum()"}, "arguments": [{"dtype": "float32", "shape": [100_000], "data": [0.5] * 100_000}]}).encode()

    def compute(self):
        self.ask("run", "POST", "/v1/run", self.BODY, JSON)


class BackgroundJobs(Client):
    """Runs in the background that take some 20 ms each; nobody waits for them."""

    def compute(self):
        self.ask("run", "POST", f"/v1/sessions/{self.session}/jobs", json.dumps({"program": {"text": SPIN}, "arguments": [20_000]}).encode(), {**JSON, "Prefer": "respond-async"})


@dataclasses.dataclass
class Load:
    """What clients without a pause have got."""
    rate: float  # answers a second
    rate_of_left: float  # the same by second of processor time that the clients have left to the server: many threads of Python cost more a request than few
    shares: list  # of each client, of the mean of all
    refusals: list  # seconds
    codes: collections.Counter  # of refusals

    def share(self):
        return f"a client's share {min(self.shares):.2f} to {max(self.shares):.2f}"

    def refused(self):
        return f"{len(self.refusals)} refused ({dict(self.codes)}) in ms: median %g, p99 %g, most %g" % spread(self.refusals)

    def assert_fair(self):
        # Each client chooses at random what it asks: shares differ by chance, the less the more answers there are.
        assert min(self.shares) >= 0.8 and max(self.shares) <= 1.2, "a session has more than its share"

    def assert_refused_at_once(self):
        assert spread(self.refusals)[1] <= 50, "who is refused waits for it"


def load(server, count, took_seconds, kind=Client, looks_for_losses=True):
    """So many clients without a pause."""
    clients = [kind(server, number, took_seconds) for number in range(count)]
    for client in clients:
        client.look = client.compute  # mostly what costs processors
    own = time.process_time()
    join(clients)
    own = time.process_time() - own
    sum_up(clients, f"{count} clients without a pause for {took_seconds} s", took_seconds)
    if looks_for_losses:
        assert_nothing_lost(clients)
    each = [sum(len(values) for values in client.took.values()) for client in clients]
    left = took_seconds * len(os.sched_getaffinity(0)) - own
    return Load(sum(each) / took_seconds, sum(each) / left, [one * count / sum(each) for one in each], [value for client in clients for value in client.refusals],
                sum((client.codes for client in clients), collections.Counter()))


def overload():
    """L2: as much is done as at the peak, and each session has its share of that."""
    took_seconds = seconds(2, 30, 300)
    with Meshd(BINARY, "--devices", "8", "--memory", "2GB") as server:
        peak = load(server, 16, took_seconds)
        for count in (64, 256):
            much = load(server, count, took_seconds)
            print(f"  goodput {much.rate / peak.rate:.2f} of the peak ({much.rate_of_left / peak.rate_of_left:.2f} in what the clients leave); {much.share()}; {much.refused()}")
            if LONG:
                assert much.rate_of_left >= 0.9 * peak.rate_of_left
                if count == 64:
                    much.assert_fair()
                if much.refusals:
                    much.assert_refused_at_once()


def refusals():
    """L2 of servers that refuse, for each reason that there is: who is refused is told at once why and when to come again, and the others have
    their share."""
    took_seconds, rate = seconds(2, 20, 120), 100
    if not LONG:
        # With sanitizers too, and where the second load finds a machine that other tests have made several times slower than the first did: a sixteenth
        # of what it can do here. The burst of one second lets the 8 sessions in.
        with Meshd(BINARY, "--devices", "8") as server:
            rate = max(16, int(load(server, 8, took_seconds, Client).rate / 16))
    for code, clients, kind, options in (("too_many_requests", 8, Client, ["--requests-per-second", str(rate)]), ("memory_full", 16, LargeRuns, ["--memory", "16MB"]),
                                         ("queue_full", 16, BackgroundJobs, ["--principal-jobs", "4"])):
        with Meshd(BINARY, "--devices", "8", *options) as server:
            # One that counts requests refuses to be looked at, too.
            much = load(server, clients, took_seconds, kind, looks_for_losses=code != "too_many_requests")
            print(f"  {code}: {much.share()}; {much.refused()}")
            assert set(much.codes) == {code}, "refused for another reason, or not at all"
            if code == "too_many_requests":
                print(f"  {much.rate / rate:.2f} of what it may take")
                # At least four times what it may take: the others are refused.
                assert len(much.refusals) > (3 if LONG else 1) * rate * took_seconds, "too few were refused for this to be an overload"
                assert much.rate >= 0.9 * rate or not LONG
            if LONG:
                much.assert_fair()
                much.assert_refused_at_once()


def leave_nothing(server, clients):
    """Deletes what they have made."""
    for client in clients:
        for array in client.arrays:
            ok(server.ask("DELETE", f"/v1/arrays/{array}"), 204)
        ok(server.ask("DELETE", f"/v1/sessions/{client.session}"), 204)
        client.connection.close()


def soak():
    """L6: what a server holds does not grow, at 60 % of what it can do."""
    took_seconds, count = seconds(6, 180, 7200), 8
    with Meshd(BINARY, "--devices", "8", "--memory", "2GB", "--keep-jobs", "200") as server:
        measured = seconds(2, 10, 60)
        clients = [Client(server, number, measured) for number in range(count)]
        join(clients)
        peak = sum(len(values) for values in sum_up(clients, "the peak", measured).values()) / measured
        leave_nothing(server, clients)
        samples, p99, rates = [], [], []
        pieces = 6
        for piece in range(pieces):
            clients = [Client(server, 100 * (piece + 1) + number, took_seconds / pieces, pace=count / (SOAK * peak)) for number in range(count)]
            join(clients)
            took = sum_up(clients, f"soak {piece}", took_seconds / pieces)
            p99.append(spread([value for values in took.values() for value in values])[1])
            rates.append(sum(len(values) for values in took.values()) / (took_seconds / pieces) / peak)
            assert_nothing_lost(clients)
            leave_nothing(server, clients)
            time.sleep(0.5)
            wal = max((path.stat().st_size for path in pathlib.Path(server.folder).rglob("*-wal")), default=0)
            samples.append((memory_of(server, "VmRSS") // 1024, descriptors(server), status_of(server, "Threads"), wal))
        print(f"  of the peak of {peak:.0f} answers/s: {', '.join(f'{rate:.2f}' for rate in rates)}")
        print("  resident KiB, descriptors, threads, bytes of the WAL: " + "; ".join(map(str, samples)))
        until(lambda: descriptors(server) <= samples[0][1] + 8, "descriptors are given back")
        assert samples[-1][3] <= 64 * MIB
        if LONG:
            growth = samples[-1][0] - samples[pieces // 2][0]  # KiB in half of the time, after the warm-up
            print(f"  {growth * 3600 / (took_seconds / 2):.0f} KiB/h, p99 {p99}")
            assert samples[-1][2] <= samples[1][2] + 4
            assert min(rates) >= 0.8 * SOAK, "the load was not what it is meant to be"
            if LONGEST:
                assert growth * 3600 / (took_seconds / 2) < 1024
                assert p99[-1] < 1.2 * p99[1], "answers have become slower"
    return 0


def main():
    sys.setswitchinterval(0.1)  # hundreds of clients are threads: those that wait for the interpreter take it less often from one that has it
    for story in (mixed, overload, refusals, soak):
        if not sys.argv[2:] or story.__name__ in sys.argv[2:]:
            story()
    return 0


sys.exit(main())
