#!/usr/bin/env python3
"""kill -9 at random moments of a session's work, a chain of jobs that each donate what the job before has made: nothing acknowledged is
lost, each job has happened once with the right values, and what was donated stays so."""
import base64
import http.client
import os
import pathlib
import random
import signal
import struct
import sys
import threading
import time

from server import Meshd, ok, until

PROGRAM = """func.func @main(%t: !stablehlo.token {jax.token = true}, %x: tensor<4xi32> {tf.aliasing_output = 1 : i32}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<4xi32>) {
  %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %n) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  %m = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %y = stablehlo.add %x, %m : tensor<4xi32>
  return %u, %y : !stablehlo.token, tensor<4xi32>
}"""
# The same with a number that a large value begins with, which is a blob while its job is not over.
LARGE = 100_000  # elements, beyond what a job's row keeps
EVERY = 4  # the so manieth job brings it
PROGRAM_LARGE = PROGRAM.replace("%n: tensor<i32>)", f"%big: tensor<{LARGE}xi32>)").replace("  %u =", f"""  %s = stablehlo.slice %big [0:1] : (tensor<{LARGE}xi32>) -> tensor<1xi32>
  %n = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
  %u =""")
KILLS = 2000 if os.environ.get("LONG") == "1" else 200 if "MESHD_LONG" in os.environ else 12
MOST_JOBS = 900  # of a chain; its check reads them as one page of 1000


class Chain:
    """Job n adds n to the array of job n-1, which it donates, and logs n."""
    placement = {}  # of a job: mesh and shardings
    size = 4  # of the arrays

    def __init__(self, server):
        self.server = server
        self.session = ok(server.ask("POST", "/v1/sessions"), 201)["id"]
        self.arrays = [ok(server.ask("POST", f"/v1/arrays?dtype=int32&shape={self.size}", bytes(4 * self.size), {"Content-Type": "application/octet-stream"}), 201)["id"]]
        self.wrong = []  # why a worker ended that should not have

    def work(self):
        """Until the server is gone. The same number goes out with the same key until its job is done."""
        try:
            while not self.is_full() and self.step():
                pass
        except BaseException as error:  # noqa: BLE001: the test tells it, whatever it is
            self.wrong.append(error)
            raise

    def is_full(self):
        return len(self.arrays) > MOST_JOBS

    def step(self):
        number = len(self.arrays)
        text, value = PROGRAM, number
        if number % EVERY == 0:
            text, value = PROGRAM_LARGE, {"dtype": "int32", "shape": [LARGE], "base64": base64.b64encode(struct.pack("<i", number) * LARGE).decode()}
        body = {"program": {"text": text.replace("4xi32", f"{self.size}xi32")}, "arguments": [{"array": self.arrays[-1]}, value], "donate": [0],
                "callbacks": {"0": {"effect": "log", "name": "n"}}, "results": {"encoding": "array"}, **self.placement}
        try:
            status, _, answer = self.server.ask("POST", f"/v1/sessions/{self.session}/jobs", body, {"Idempotency-Key": f"{self.session}-{number}"})
        except (OSError, http.client.HTTPException, ValueError):  # cut off, before or within the answer
            return False
        if status == 200:
            effects = [(effect["sequence"], effect["values"][0]["data"]) for effect in answer["effects"]]
            assert effects == [(number, number)], f"job {number} has the effects {effects}"
            self.arrays.append(answer["results"][0]["array"])
        else:
            assert (status, answer["code"]) == (409, "idempotency_in_progress"), f"job {number} gave {status}: {answer}"
        return True

    def check(self):
        ok(self.server.ask("POST", f"/v1/sessions/{self.session}/barrier"))
        done = len(self.arrays) - 1
        log = ok(self.server.ask("GET", f"/v1/sessions/{self.session}/effects?limit=1000"))["items"]
        # One job more may have happened, whose answer was lost.
        assert len(log) in (done, done + 1), f"{done} jobs are acknowledged, {len(log)} are logged"
        found = [(entry["sequence"], entry["values"][0]["data"]) for entry in log]
        assert found == [(n, n) for n in range(1, len(log) + 1)], f"the log is {found}"
        jobs = ok(self.server.ask("GET", f"/v1/sessions/{self.session}/jobs?limit=1000"))["items"][::-1]
        told = [(job["number"], job["state"]) for job in jobs]
        assert told == [(n, "done") for n in range(1, len(log) + 1)], f"the jobs are {told}"
        assert [job["id"] for job in jobs] == [entry["job"] for entry in log], "effects of other jobs"
        for n, array in enumerate(self.arrays):
            status, _, data = self.server.ask("GET", f"/v1/arrays/{array}/data")
            if n < len(log):
                assert (status, data["code"]) == (410, "deleted_or_donated"), f"array {n} was donated, and is {status}: {data}"
            else:
                value = n * (n + 1) // 2
                assert status == 200 and data == struct.pack("<i", value) * self.size, f"array {n} is {status}: {data[:99]}, not {value}"
        return done


def begin_work(chain, rng, done):
    """A thread that sends jobs, a random time after it began. `done` has the chain's jobs before the last two kills, and gets this one's."""
    worker = threading.Thread(target=chain.work)
    worker.start()
    time.sleep(rng.uniform(0.02, 0.25))
    # On a slow machine: a job that three kills in a row find running fails with `crashed`, as it should.
    before = len(chain.arrays)
    if done == [before, before]:
        until(lambda: len(chain.arrays) > before or not worker.is_alive(), "a job is done", 60)
    done[:] = [done[1], len(chain.arrays)]
    return worker


def main():
    rng = random.Random(20261121)
    kills = acknowledged = chains = 0
    with Meshd(sys.argv[1], "--devices", "2") as server:
        while kills < KILLS:
            chain, done = Chain(server), [0, 0]  # and its jobs before the last two kills
            for _ in range(min(50, KILLS - kills)):
                if chain.is_full():
                    break
                worker = begin_work(chain, rng, done)
                server.stop(signal.SIGKILL)
                worker.join()
                assert not chain.wrong, chain.wrong
                server.start()
                kills += 1
            # Work is acknowledged after the last kill, too.
            before = len(chain.arrays)
            until(lambda: chain.step() and len(chain.arrays) > before, "a job is done", 60)
            chain.check()
            assert server.stop() == 0, "SIGTERM ends with 0"
            server.start()
            acknowledged += chain.check()
            chains += 1
            # Each chain leaves one array; what requests brought left with their jobs.
            left = [path.name for path in pathlib.Path(server.folder, "data", "blobs").rglob("*.*")]
            assert len(left) == chains and not any(name.startswith("request_") for name in left), f"blobs of {chains} chains: {left}"
    assert acknowledged > KILLS, f"only {acknowledged} jobs were acknowledged in {KILLS} kills"
    print(f"{kills} kills, {acknowledged} acknowledged jobs in {chains} sessions: nothing lost, all values right")


if __name__ == "__main__":
    main()
