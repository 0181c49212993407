#!/usr/bin/env python3
"""kill -9 at random moments of a session's work: nothing acknowledged is lost, the log is dense, each job's effect stands once."""
import os
import random
import signal
import sys
import threading
import time

from server import Meshd, until

PROGRAM = """func.func @main(%t: !stablehlo.token {jax.token = true}, %x: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}, tensor<4xf32>) {
  %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %n) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %u, %y : !stablehlo.token, tensor<4xf32>
}"""
KILLS = 2000 if os.environ.get("LONG") == "1" else 200 if "MESHD_LONG" in os.environ else 12


def main():
    rng = random.Random(20261121)
    acknowledged = []  # (job number sent, array that its answer named)
    with Meshd(sys.argv[1], "--devices", "2") as server:
        session = server.ask("POST", "/v1/sessions")[2]["id"]
        array = server.ask("POST", "/v1/arrays?dtype=float32&shape=4", b"\0" * 16, {"Content-Type": "application/octet-stream"})[2]["id"]
        state = {"next": 1, "array": array}

        def work():
            while True:
                number = state["next"]
                body = {"program": {"text": PROGRAM}, "arguments": [{"array": state["array"]}, number], "donate": [],
                        "callbacks": {"0": {"effect": "log", "name": "n"}}, "results": {"encoding": "array"}}
                try:
                    status, _, answer = server.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Idempotency-Key": f"job-{number}"})
                except (OSError, ValueError, Exception):  # the server is gone: the same job again, with the same key
                    return
                if status == 200:
                    acknowledged.append((number, answer["results"][0]["array"]))
                    state["array"], state["next"] = answer["results"][0]["array"], number + 1
                elif status != 409:
                    raise SystemExit(f"job {number} gave {status}: {answer}")

        for _ in range(KILLS):
            worker = threading.Thread(target=work)
            worker.start()
            time.sleep(rng.uniform(0.02, 0.25))
            server.stop(signal.SIGKILL)
            worker.join()
            server.start()
        worker = threading.Thread(target=work)
        worker.start()
        until(lambda: len(acknowledged) > KILLS, "more acknowledged jobs than kills", 60)
        server.ask("POST", f"/v1/sessions/{session}/barrier")
        server.stop()
        worker.join()
        server.start()
        server.ask("POST", f"/v1/sessions/{session}/barrier")

        log, after = [], 0
        while True:
            page = server.ask("GET", f"/v1/sessions/{session}/effects?after={after}&limit=1000")[2]
            log += page["items"]
            if page["next"] is None:
                break
            after = page["next"]
        assert [entry["sequence"] for entry in log] == list(range(1, len(log) + 1)), "the log has gaps or repeats"
        values = [entry["values"][0]["data"] for entry in log]
        assert len(set(values)) == len(values), f"an effect stands twice: {values}"
        assert values == sorted(values), "effects stand out of order"
        missing = [number for number, _ in acknowledged if number not in set(values)]
        assert not missing, f"acknowledged jobs without their effect: {missing}"
        lost = [name for _, name in acknowledged if server.ask("GET", f"/v1/arrays/{name}/data")[0] != 200]
        assert not lost, f"acknowledged arrays lost: {lost}"
        print(f"{KILLS} kills, {len(acknowledged)} acknowledged jobs, {len(log)} effects: nothing lost")


main()
