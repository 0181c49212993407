#!/usr/bin/env python3
"""kill -9 of a random rank at random moments of a session's work on a mesh of all ranks: hosts_kill_test.py BINARY. The whole job of MPI ends
and leaves no process; a restart with as many ranks, with others or as one process has all that was acknowledged, each job once with the right
values. The chain of jobs is kill_test.py's. Without MPI it ends with 77, which counts as skipped."""
import os
import pathlib
import random
import signal
import sys

from hosts_test import MPIRUN, has_mpi, ranks_of
from kill_test import Chain, begin_work
from server import Meshd, until

KILLS = 100 if os.environ.get("LONG") == "1" else 10
RANKS = [2, 2, 4, 2, 1]  # of the starts, in turn
QUIET = [*MPIRUN[:-1], "--quiet", "-n"]  # it tells of every killed rank


class ShardedChain(Chain):
    """On all devices, of which each rank has some; results are large enough to be stored on the disks of the ranks."""
    size = 1 << 16
    placement = {"mesh": {"axis_names": ["x"], "devices": [0, 1, 2, 3]}, "in_shardings": [{"spec": ["x"]}, {"spec": []}]}


def launch(server, start):
    count = RANKS[start % len(RANKS)]
    server.launcher = [*QUIET, str(count)] if count > 1 else []
    server.start()


def kill_one(server, rng):
    """SIGKILL to a rank; the rank, when all of them are gone."""
    ranks = ranks_of(server) if server.launcher else [server.process.pid]
    rank = rng.randrange(len(ranks))
    if not server.launcher:
        server.stop(signal.SIGKILL)
        return rank
    server.assert_runs()
    os.kill(ranks[rank], signal.SIGKILL)
    assert server.process.wait(60) != 0, f"rank {rank} was killed, and the job ended well"
    until(lambda: not any(pathlib.Path("/proc", str(process)).exists() for process in ranks), f"no process is left after rank {rank} was killed")
    return rank


def main():
    if not has_mpi(sys.argv[1]):
        return 77
    rng = random.Random(20261126)
    victims = {}
    server = Meshd(sys.argv[1], "--devices", "4", launcher=[*QUIET, str(RANKS[0])])
    with server:
        chain, done = ShardedChain(server), [0, 0]  # and its jobs before the last two kills
        for kill in range(KILLS):
            worker = begin_work(chain, rng, done)
            victim = kill_one(server, rng)
            victims[victim] = victims.get(victim, 0) + 1
            worker.join()
            assert not chain.wrong, chain.wrong
            launch(server, kill + 1)
            chain.check()
        # Work is acknowledged after the last kill, too.
        before = len(chain.arrays)
        until(lambda: chain.step() and len(chain.arrays) > before, "a job is done", 60)
        chain.check()
        os.kill(ranks_of(server)[0] if server.launcher else server.process.pid, signal.SIGTERM)
        assert server.process.wait(60) == 0, "SIGTERM to rank 0 ends the job with 0"
        launch(server, 0)
        acknowledged = chain.check()
        # The chain leaves one array; what requests brought left with their jobs.
        data = pathlib.Path(server.folder, "data")
        paths = [path for folder in (data / "blobs", *(data / "ranks").glob("*/blobs")) for path in folder.rglob("*.*")]
        left = {path.name.split(".")[0] for path in paths}
        assert len(left) == 1 and not any(name.startswith("request_") for name in left), f"blobs of one chain: {left}"
        os.kill(ranks_of(server)[0], signal.SIGTERM)
        server.process.wait(60)
    assert acknowledged > KILLS // 2, f"only {acknowledged} jobs were acknowledged in {KILLS} kills"
    print(f"{KILLS} kills, of ranks {dict(sorted(victims.items()))}; {acknowledged} acknowledged jobs: nothing lost, all values right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
