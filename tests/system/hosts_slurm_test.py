#!/usr/bin/env python3
"""Ranks that Slurm starts: hosts_slurm_test.py BINARY. munged, slurmctld and slurmd on this machine alone, in a folder of their own, with the least
that they need; `srun --mpi=pmix` starts two ranks, whose answers are those of one process. Where Slurm is not installed, or does not start here, it
says why and ends with 77. Part of ./dev check-hosts."""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from hosts_test import (arrays_stay_with_the_rank_that_has_them, data_of, devices_name_their_process, has_mpi, jobs_of_a_session_log_in_its_order,
                        large_array, large_run, passes, programs_have_the_same_bits, ranks_of)
from server import Meshd, free_port, until

NEEDED = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "scancel": "slurm-client"}
# No control groups, no accounting: they are a cluster's. A rank's exit is srun's to see, as by default.
CONFIGURATION = """ClusterName=meshd
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
"""
LAUNCHER = ["srun", "--mpi=pmix", "--overcommit", "-n", "2"]


class DoesNotStart(Exception):
    pass


class Slurm:
    """The three daemons, and SLURM_CONF for who uses them. DoesNotStart: why there are none."""

    def __init__(self, folder):
        self.folder, self.daemons, self.logs = pathlib.Path(folder), [], []

    def start(self, name, *arguments):
        log = open(self.folder / f"{name}.log", "w+")
        self.logs.append(log)
        self.daemons.append(subprocess.Popen([self.tool(name), *arguments], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))

    @staticmethod
    def tool(name):
        return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def __enter__(self):
        lacking = sorted({package for name, package in NEEDED.items() if self.tool(name) is None})
        if lacking:
            raise DoesNotStart(f"{', '.join(lacking)} not installed")
        self.folder.chmod(0o711)  # munged wants its socket reachable for all
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        ports = [free_port(), free_port()]
        file = self.folder / "slurm.conf"
        file.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], controller=ports[0], daemon=ports[1], user=pwd.getpwuid(os.geteuid()).pw_name,
                                             folder=self.folder, cpus=os.cpu_count()))
        os.environ["SLURM_CONF"] = str(file)
        try:
            self.start("munged", "--foreground", "--num-threads=1", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                       *(f"--{what}-file={self.folder}/munged.{what}" for what in ("pid", "log", "seed")))
            self.await_("munged has its socket", lambda: (self.folder / "munge.socket").exists())
            self.start("slurmctld", "-D", "-i")
            self.start("slurmd", "-D")
            self.await_("a node is idle", lambda: "idle" in subprocess.run(["sinfo", "--noheader", "-o", "%t"], capture_output=True, text=True).stdout)
        except BaseException:
            self.__exit__()
            raise
        return self

    def await_(self, what, condition):
        deadline = time.monotonic() + 60
        while not condition():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                told = "".join(pathlib.Path(log.name).read_text() for log in self.logs)
                raise DoesNotStart(f"not within 60 s: {what}; ended: {ended or 'none'}\n{told[-3000:]}")
            time.sleep(0.1)

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.terminate()
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for log in self.logs:
            log.close()


def answers_are_those_of_one_process(servers):
    assert len(ranks_of(servers[1])) == 2, ranks_of(servers[1])
    for story in (devices_name_their_process, programs_have_the_same_bits, arrays_stay_with_the_rank_that_has_them, jobs_of_a_session_log_in_its_order):
        story(servers)


def signals_end_it_and_lose_nothing(server):
    """SIGTERM to rank 0, and scancel, drain; a rank that is killed ends the job with the others. Afterwards all is there."""
    array, _ = large_run(server, large_array(server), 1.5)
    data = data_of(server, array)

    def restart_after(end, is_well):
        ranks = ranks_of(server)
        server.assert_runs()
        end(ranks)
        code = server.process.wait(60)
        assert (code == 0) == is_well, code
        until(lambda: not any(pathlib.Path("/proc", str(rank)).exists() for rank in ranks), "no rank is left", 60)
        server.start()
        assert data_of(server, array) == data

    restart_after(lambda ranks: os.kill(ranks[0], signal.SIGTERM), True)
    restart_after(lambda ranks: subprocess.run(["scancel", "--state=RUNNING", "--partition=all"], check=True), True)
    for rank in (0, 1):
        restart_after(lambda ranks, rank=rank: os.kill(ranks[rank], signal.SIGKILL), False)
    os.kill(ranks_of(server)[0], signal.SIGTERM)
    assert server.process.wait(60) == 0


def main():
    binary = os.path.abspath(sys.argv[1])
    if not has_mpi(binary):
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="meshd-slurm-") as folder:
        try:
            with Slurm(folder), Meshd(binary, "--devices", "8", launcher=LAUNCHER) as two:
                with Meshd(binary, "--devices", "8") as one:
                    failed += not passes("answers_are_those_of_one_process", lambda: answers_are_those_of_one_process((one, two)))
                failed += not passes("signals_end_it_and_lose_nothing", lambda: signals_end_it_and_lose_nothing(two))
        except DoesNotStart as why:
            print(f"Slurm does not start here, and srun was not tried: {why}")
            return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
