#!/usr/bin/env python3
"""One mesh over two hosts, as far as the network can tell: hosts_network_test.py BINARY. mpirun starts a rank in each of two namespaces
(two_hosts.py) from a host file. On a plain link, one that loses packets, one that is slow and one that takes its time, answers are those of one
process; a slow rank is not called dead; a link that goes down is told, ends the job, and loses nothing. As root; where it cannot run it says why and
ends with 77. Part of ./dev check-hosts."""
import http.client
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import two_hosts
from hosts_kill_test import ShardedChain
from hosts_test import (MESH, RUN, arrays_stay_with_the_rank_that_has_them, cancelled_job_frees_the_devices_of_all_ranks, data_of,
                        devices_name_their_process, effects_are_in_the_same_order, has_mpi, jobs_of_a_session_log_in_its_order,
                        large_sums_have_the_same_bits, mesh_id, passes, programs_have_the_same_bits, ranks_of, shards_of_other_ranks_are_read)
from kill_test import begin_work
from server import Meshd, ok, until

STORIES = [devices_name_their_process, programs_have_the_same_bits, arrays_stay_with_the_rank_that_has_them, shards_of_other_ranks_are_read,
           large_sums_have_the_same_bits, effects_are_in_the_same_order, jobs_of_a_session_log_in_its_order, cancelled_job_frees_the_devices_of_all_ranks]
# Conformance cases: all programs on the plain link, with and without random shardings; with these, operations of such names on every link.
OPERATIONS = ["dot_general", "reduce_", "gather", "sort"]
SHARDED = ["--shard", "1"]
# 32 MiB over 20 Mbit/s: the half that goes to the other rank takes 7 s, longer than a rank may be silent.
SLOW = "20mbit"
SLOW_ROWS = 8192
DOUBLE = {"format": "numpy", "text": "def f(a): return a * 2"}


def outcome(server, *selected):
    """{case: what was wrong, or None} of conformance cases; without those that have nothing to shard."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, str(RUN), "--url", server.url, "--json", file.name, "-q", "-j", "2", *selected],
                       cwd=RUN.parent, stdout=subprocess.DEVNULL, check=False)
        return {case: problem for case, problem in json.load(open(file.name)).items() if problem != "skipped"}


def conformance_gives_what_one_process_gives(servers, *selected):
    one, two = (outcome(server, *selected) for server in servers)
    assert one.keys() == two.keys() and any(problem is None for problem in one.values()), f"no case passes: {one}"
    worse = {case: problem for case, problem in two.items() if problem != one[case]}
    assert not worse, f"of {len(one)} cases: {worse}"
    print(f"  {len(one)} conformance cases, {sum(problem is None for problem in one.values())} pass on both", flush=True)


def ranks_are_on_two_hosts(server):
    spaces = [os.readlink(f"/proc/{rank}/ns/net") for rank in ranks_of(server)]
    assert len(set(spaces)) == 2 and spaces[0] == os.readlink("/proc/self/ns/net"), spaces


class Readiness(threading.Thread):
    """Asks /readyz until it is told to end; all that it heard."""

    def __init__(self, server):
        super().__init__()
        self.server, self.ends, self.heard = server, threading.Event(), set()

    def run(self):
        while not self.ends.wait(0.1):
            status, _, text = self.server.ask("GET", "/readyz")
            self.heard.add((status, text.decode().strip()))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.join()

    def hold(self):
        assert self.heard == {(200, "ok")}, self.heard


def a_rank_behind_a_slow_link_is_not_called_dead(hosts, servers):
    """Pings wait behind the blocks of a run."""
    answers = []
    hosts.limit(SLOW)
    for server in servers:
        with Readiness(server) as readiness:
            mesh = mesh_id(server, MESH)
            data = struct.pack("<1024f", *(i / 7 for i in range(1024))) * SLOW_ROWS
            array = ok(server.ask("POST", f"/v1/arrays?dtype=float32&shape={SLOW_ROWS},1024&mesh={mesh}&spec=x,y", data, {"Content-Type": "application/octet-stream"}), 201)["id"]
            begun = time.monotonic()
            body = {"program": DOUBLE, "arguments": [{"array": array}], "mesh": MESH, "in_shardings": [{"spec": ["x", "y"]}], "results": {"encoding": "array"}}
            answers.append(data_of(server, ok(server.ask("POST", "/v1/run", body))["results"][0]["array"]))
            took = time.monotonic() - begun
        readiness.hold()
    hosts.limit(None)
    assert answers[0] == answers[1] == struct.pack("<1024f", *(2 * x for x in struct.unpack("<1024f", data[:4096]))) * SLOW_ROWS
    print(f"  32 MiB doubled over {SLOW} in {took:.1f} s, and ready all the time", flush=True)


def same_answers(servers, name):
    """Every story on the link as it is; how many failed."""
    begun = time.monotonic()
    failed = 0
    with Readiness(servers[1]) as readiness:
        for story in STORIES:
            failed += not passes(f"{story.__name__}, {name}", lambda story=story: story(servers))
        for word in OPERATIONS:
            failed += not passes(f"conformance of {word}, {name}", lambda word=word: conformance_gives_what_one_process_gives(servers, *SHARDED, "-k", word, "ops"))
    failed += not passes(f"no rank is called dead, {name}", readiness.hold)
    round_trip = next(line.split()[-1] for line in servers[1].ask("GET", "/metrics")[2].decode().splitlines() if line.startswith("meshd_rank_round_trip_seconds{"))
    print(f"  {name}: {time.monotonic() - begun:.1f} s; the last ping took {float(round_trip) * 1e3:.2f} ms", flush=True)
    return failed


def packets_were_lost(hosts):
    assert hosts.lost() > 20, f"only {hosts.lost()} packets were lost"
    print(f"  {hosts.lost()} packets were lost", flush=True)


def work_until_a_few_are_done(chain, rng, done):
    """The thread that goes on sending jobs."""
    before = len(chain.arrays)
    worker = begin_work(chain, rng, done)
    until(lambda: len(chain.arrays) > before + 5 or not worker.is_alive(), "jobs are done", 60)
    return worker


def what_readyz_says(server):
    """(status, text), or nothing where the server is ending."""
    try:
        status, _, text = server.ask("GET", "/readyz")
        return status, text.decode()
    except (OSError, http.client.HTTPException):
        return None


def until_silent(server):
    """The link is down: after how many seconds /readyz said so."""
    begun = time.monotonic()
    status, text = until(lambda: (said := what_readyz_says(server)) and said[0] != 200 and said, "/readyz tells of it", 60)
    assert status == 503 and "rank 1 has not answered" in text, (status, text)
    return time.monotonic() - begun


def until_gone(ranks):
    until(lambda: not any(pathlib.Path("/proc", str(rank)).exists() for rank in ranks), "no rank is left", 60)


def start_again(server):
    """As a supervisor does, which starts once more what is refused: the far rank of before may still have its folder."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return server.start()
        except RuntimeError:
            if server.process.poll() is None or time.monotonic() > deadline:
                raise


def a_link_that_goes_down_ends_the_job_and_loses_nothing(hosts, binary, log):
    """In the middle of a session's work. A link that comes back holds it up; one that does not is told by /readyz, then mpirun ends, and the
    far rank by itself."""
    # What is on its way to a host that is gone is given up after 13 s, not after a quarter of an hour.
    hosts.both(lambda _: [["sh", "-c", "echo 6 >/proc/sys/net/ipv4/tcp_retries2"]])
    with Meshd(binary, "--devices", "4", launcher=hosts.launcher(), log=log) as server:
        chain, done, rng = ShardedChain(server), [0, 0], random.Random(20261126)
        worker = work_until_a_few_are_done(chain, rng, done)
        hosts.link("down")
        until_silent(server)
        hosts.link("up")
        until(lambda: what_readyz_says(server) == (200, "ok\n"), "the rank answers again", 60)
        before = len(chain.arrays)
        until(lambda: len(chain.arrays) > before + 5 or not worker.is_alive(), "the session goes on", 60)
        for is_awaited in (True, False):  # the far rank's end, before the restart
            if not worker.is_alive():
                worker = work_until_a_few_are_done(chain, rng, done)
            ranks = ranks_of(server)
            ranks_are_on_two_hosts(server)
            hosts.link("down")
            begun = time.monotonic()
            told = until_silent(server)
            assert server.process.wait(60) != 0
            ended = time.monotonic() - begun
            if is_awaited:
                until_gone(ranks)
            gone = time.monotonic() - begun
            worker.join()
            assert not chain.wrong, chain.wrong
            hosts.link("up")
            start_again(server)
            chain.check()
            until_gone(ranks)
            print(f"  the link went down: /readyz said so after {told:.1f} s, mpirun ended after {ended:.1f} s" + f", the far rank after {gone:.1f} s" * is_awaited, flush=True)
        before = len(chain.arrays)
        until(lambda: chain.step() and len(chain.arrays) > before, "a job is done", 60)
        print(f"  {chain.check()} acknowledged jobs: nothing lost", flush=True)
        os.kill(ranks_of(server)[0], signal.SIGTERM)
        assert server.process.wait(60) == 0


def main():
    binary = os.path.abspath(sys.argv[1])
    if not has_mpi(binary):
        return 77
    if two_hosts.INSIDE not in os.environ and (why := two_hosts.missing()):
        print(f"{why}: two hosts were not tried")
        return 77
    two_hosts.go_inside()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, two_hosts.TwoHosts(folder) as hosts:
        with Meshd(binary, "--devices", "8") as one:
            with Meshd(binary, "--devices", "8", launcher=hosts.launcher()) as two:
                servers = (one, two)
                failed += not passes("ranks_are_on_two_hosts", lambda: ranks_are_on_two_hosts(two))
                failed += same_answers(servers, "plain")
                failed += not passes("conformance of programs", lambda: conformance_gives_what_one_process_gives(servers, "programs"))
                failed += not passes("conformance of sharded programs", lambda: conformance_gives_what_one_process_gives(servers, *SHARDED, "programs"))
                hosts.lose(2)
                failed += same_answers(servers, "loss")
                failed += not passes("packets_were_lost", lambda: packets_were_lost(hosts))
                hosts.lose(0)
                hosts.limit("100mbit")
                failed += same_answers(servers, "rate")
                hosts.limit(None)
                failed += not passes("a_rank_behind_a_slow_link_is_not_called_dead", lambda: a_rank_behind_a_slow_link_is_not_called_dead(hosts, servers))
                os.kill(ranks_of(two)[0], signal.SIGTERM)
                assert two.process.wait(60) == 0, "SIGTERM to rank 0 ends the job with 0"
            hosts.delay(0.005)
            with Meshd(binary, "--devices", "8", launcher=hosts.launcher("10.78.0")) as two:
                failed += same_answers((one, two), "delay")
        with open(pathlib.Path(folder, "log"), "w+") as log:  # mpirun tells of a lost host at length
            failed += not passes("a_link_that_goes_down_ends_the_job_and_loses_nothing", lambda: a_link_that_goes_down_ends_the_job_and_loses_nothing(hosts, binary, log))
            log.seek(0)
            if failed:
                print(log.read())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
