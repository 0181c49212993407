#!/usr/bin/env python3
"""No step holds a device: a program of 300 bytes that would take minutes can be deleted, and others run beside it: long_steps_test.py BINARY."""
import sys

from server import Meshd
from shared_server import BINARY, ok, run, until

MINUTES = """func.func @main() -> tensor<f32> {
  %0 = stablehlo.iota dim = 0 : tensor<1000000x1000000xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<1000000x1000000xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}"""
SMALL = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.negate %a : tensor<f32> return %0 : tensor<f32> }"


def start(server):
    job = ok(server.ask("POST", "/v1/run", {"program": {"text": MINUTES}, "arguments": []}, {"Prefer": "respond-async"}), 202)["id"]
    until(lambda: server.ask("GET", f"/v1/jobs/{job}")[2]["state"] == "running", "the job runs")
    return job


def run_small(server, number):
    answer = ok(server.ask("POST", "/v1/run", {"program": {"text": SMALL}, "arguments": [number]}))  # on device 0
    assert answer["results"][0]["data"] == -number, answer


def state(server, job):
    return ok(server.ask("GET", f"/v1/jobs/{job}"))["state"]


def test_small_runs_end_beside_a_run_of_minutes():
    with Meshd(BINARY, "--devices", "2") as server:
        jobs = [start(server) for _ in range(3)]
        for number in range(10):
            run_small(server, number)
        assert all(state(server, job) == "running" for job in jobs)
        for job in jobs:
            server.ask("DELETE", f"/v1/jobs/{job}")


def test_deleted_job_ends_in_the_middle_of_its_step():
    with Meshd(BINARY, "--devices", "1") as server:
        job = start(server)
        ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
        until(lambda: state(server, job) == "cancelled", "the job is cancelled")
        run_small(server, 7)


def test_deadline_takes_effect_in_the_middle_of_a_step():
    with Meshd(BINARY, "--devices", "1") as server:
        status, _, answer = server.ask("POST", "/v1/run", {"program": {"text": MINUTES}, "arguments": [], "deadline": 0.1})
        assert answer["code"] == "deadline_exceeded", (status, answer)
        run_small(server, 7)


def test_operations_are_budgeted():
    with Meshd(BINARY, "--devices", "1", "--operation-budget", "1000000000") as server:
        status, _, answer = server.ask("POST", "/v1/run", {"program": {"text": MINUTES}, "arguments": []})
        assert answer["code"] == "budget_exceeded", (status, answer)
        assert "--operation-budget" in answer["detail"], answer
        run_small(server, 7)


sys.exit(run(dict(globals())))
