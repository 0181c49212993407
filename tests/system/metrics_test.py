"""What /metrics says: metrics_test.py BINARY. The text is parsed line by line as the Prometheus text format 0.0.4 has it, with promtool too
where it is installed; jobs appear in it, and in the log, with how long they took."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from server import Meshd, ok, until

BINARY = sys.argv[1]
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\})? (\S+)')
DOUBLE = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"


def parsed(text):
    """{(name, labels): value}, and {name: type}; fails where the format is broken."""
    types, helped, samples = {}, set(), {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped, f"{name} is described twice"
            helped.add(name)
            assert len(line.split(" ", 3)) == 4, line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and name in helped, line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
            assert types.get(family), f"{name} has no type"
            assert (name == family) != (types[family] == "histogram"), line
            assert (name, labels) not in samples, f"{line} is there twice"
            samples[name, labels] = float(value)
    return samples, types


def buckets_of(samples, name):
    """The cumulative counts of each series of a histogram, by its other labels."""
    out = {}
    for (sample, labels), value in samples.items():
        if sample == name + "_bucket":
            other, bound = re.fullmatch(r'(.*?),?le="([^"]*)"', labels).groups()
            out.setdefault(other or None, []).append((float(bound), value))
    return out


class Metrics(unittest.TestCase):
    def setUp(self):
        self.log = tempfile.TemporaryFile("w+")
        self.addCleanup(self.log.close)

    def test_histograms_add_up_and_jobs_are_counted_and_logged(self):
        with Meshd(BINARY, "--log-format", "json", "--log-level", "info", log=self.log) as server:
            session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
            run = {"session": session, "program": {"text": DOUBLE}, "arguments": [[1, 2]]}
            for body, status in ((run, 200), ({**run, "arguments": [[1, 2, 3]]}, 422)):
                self.assertEqual(server.ask("POST", "/v1/run", body, {"Prefer": "wait=60"})[0], status)
            text = server.ask("GET", "/metrics")[2].decode()
        samples, types = parsed(text)
        self.assertEqual(samples['meshd_jobs_total', 'state="done"'], 1)
        histograms = [name for name, kind in types.items() if kind == "histogram"]
        for name in ("meshd_job_queue_seconds", "meshd_job_run_seconds", "meshd_job_commit_seconds", "meshd_job_seconds"):
            self.assertIn(name, histograms)
            self.assertEqual(samples[name + "_count", None], 1)
        self.assertGreaterEqual(samples["meshd_job_seconds_sum", None], samples["meshd_job_run_seconds_sum", None])
        for name in histograms:
            for labels, buckets in buckets_of(samples, name).items():
                for column in zip(*buckets):
                    self.assertEqual(list(column), sorted(column), f"{name} {labels}")
                self.assertEqual(buckets[-1], (float("inf"), samples[name + "_count", labels]), f"{name} {labels}")
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)
        self.log.seek(0)
        jobs = [line for line in map(json.loads, self.log) if line["event"] == "job"]
        self.assertEqual([(line["session"], line["outcome"], line["level"]) for line in jobs], [(session, "done", "info")])
        self.assertTrue(jobs[0]["job"].startswith("job_"))
        for name in ("queue_ms", "run_ms", "commit_ms", "job_ms"):
            self.assertIsInstance(jobs[0][name], float)

    def test_requests_are_counted_by_operation_alone(self):
        with Meshd(BINARY, "--devices", "8") as server:
            for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PATCH"):
                for n in range(60):
                    server.ask(method, f"/v1/arrays/arr_{n}")
                    server.ask(method, f"/v1/nothing/{n}")
            samples, _ = parsed(server.ask("GET", "/metrics")[2].decode())
        labels = {}
        for (name, given), _ in samples.items():
            for label in re.findall(r'([a-z_]+)="', given or ""):
                labels.setdefault(name, set()).add(label)
        of_http = {name: found for name, found in labels.items() if name.startswith("meshd_http_request")}
        self.assertEqual(of_http, {"meshd_http_requests_total": {"operation", "code"}, "meshd_http_request_duration_seconds_bucket": {"operation", "le"},
                                   "meshd_http_request_duration_seconds_sum": {"operation"}, "meshd_http_request_duration_seconds_count": {"operation"}})
        timed = {given for name, given in samples if name == "meshd_http_request_duration_seconds_count"}
        self.assertLessEqual(timed, {f'operation="{name}"' for name in ("getArray", "deleteArray", "getReadyz", "unmatched")}, timed)
        self.assertEqual(samples["meshd_http_requests_total", 'operation="getArray",code="404"'], 120)

    def test_refusals_by_handlers_are_told_apart_by_error_code(self):
        with Meshd(BINARY, "--principal-sessions", "1") as server:
            ok(server.ask("POST", "/v1/sessions", {}), 201)
            before, _ = parsed(server.ask("GET", "/metrics")[2].decode())
            self.assertEqual([server.ask("POST", "/v1/sessions", {})[0] for _ in range(2)], [429, 429])
            counted = ("meshd_http_refusals_total", 'code="limit_reached"')
            # A request is counted when its answer has left.
            until(lambda: parsed(server.ask("GET", "/metrics")[2].decode())[0].get(counted) == 2, "both refusals are counted")
            _, types = parsed(server.ask("GET", "/metrics")[2].decode())
        self.assertEqual((before.get(counted), types[counted[0]]), (None, "counter"))

    def test_results_sent_as_files_are_an_account_of_their_own(self):
        zeros = "def f(x):\n    return jnp.zeros((256, 256)) + x\n"  # 256 KiB
        with Meshd(BINARY) as server:
            run = {"program": {"format": "numpy", "text": zeros}, "arguments": [1.0]}
            before, _ = parsed(server.ask("GET", "/metrics")[2].decode())
            status, _, body = server.ask("POST", "/v1/run", run, {"Accept": "application/x-npy"})
            self.assertEqual((status, len(body) > 256 << 10), (200, True))
            after, _ = parsed(server.ask("GET", "/metrics")[2].decode())
            history = ok(server.ask("GET", "/v1/history"))["samples"]
        label = 'account="files"'
        for name in ("held_bytes", "limit_bytes", "refused_total"):
            self.assertIn(("meshd_memory_" + name, label), after)
        self.assertEqual(after["meshd_memory_limit_bytes", label], after["meshd_memory_limit_bytes", 'account="answers"'])
        self.assertEqual(before["meshd_memory_peak_bytes", label], 0)
        self.assertGreaterEqual(after["meshd_memory_peak_bytes", label], 256 << 10)
        for sample in history:
            self.assertIn("files", sample["memory"])

    def test_background_job_that_fails_by_the_servers_fault_is_an_error_that_says_what_happened(self):
        with Meshd(BINARY, "--log-format", "json", "--log-level", "warn", log=self.log) as server:
            array = ok(server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [2], "data": [1, 2]}), 201)["id"]
            server.stop()
            (blob,) = [path for path in pathlib.Path(server.folder, "data", "blobs").rglob("arr_*") if path.is_file()]
            blob.write_bytes(b"X" + blob.read_bytes()[1:])
            server.start()
            run = {"program": {"text": DOUBLE}, "arguments": [{"array": array}]}
            job = ok(server.ask("POST", "/v1/run", run, {"Prefer": "respond-async"}), 202)["id"]
            self.assertEqual(ok(server.ask("GET", f"/v1/jobs/{job}?wait=60"))["state"], "failed")
        self.log.seek(0)
        (line,) = [line for line in map(json.loads, self.log) if line["event"] == "job"]
        self.assertEqual((line["level"], line["job"], line["outcome"]), ("error", job, "storage_failed"))
        self.assertIn(f"{array}.v1", line["reason"])

    def test_lines_of_the_log_have_ids_and_numbers_as_fields(self):
        with Meshd(BINARY, "--log-format", "json", "--log-level", "info", log=self.log) as server:
            session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
            run = {"program": {"text": DOUBLE}, "arguments": [[1, 2]]}
            job = ok(server.ask("POST", "/v1/run", {**run, "session": session}, {"Prefer": "respond-async", "Idempotency-Key": "k"}), 202)["id"]
            ok(server.ask("GET", f"/v1/jobs/{job}?wait=60"))
            ok(server.ask("POST", "/v1/run", {**run, "session": session}, {"Prefer": "respond-async", "Idempotency-Key": "k"}))
            other = server.ask("POST", f"/v1/sessions/{session}/jobs", run)[1]["Location"].rpartition("/")[2]
            ok(server.ask("GET", f"/v1/sessions/{session}/effects"))
            ok(server.ask("POST", "/v1/run", run))
            server.ask("GET", "/v1/jobs/not-an-id")
        self.log.seek(0)
        lines = [json.loads(line) for line in self.log]
        # A line is written when the answer has been sent: the next request may have its line first.
        requests = sorted((line for line in lines if line["event"] == "request"), key=lambda line: int(line["request_id"].rpartition("-")[2], 16))
        told = [(line["operation"], line.get("session"), line.get("job")) for line in requests if line.get("operation") != "getReadyz"]
        self.assertEqual(told, [("createSession", session, None), ("run", session, job), ("getJob", None, job), ("run", session, job),
                                ("createJob", session, other), ("listEffects", session, None), ("run", None, None), ("getJob", None, None)])
        kinds = {}
        for line in lines:
            for name, value in line.items():
                kinds.setdefault(name, set()).add(type(value))
        for name in ("status", "bytes_in", "bytes_out", "bytes", "devices", "threads", "port", "requeued_jobs", "cancelled_jobs"):
            self.assertEqual(kinds.get(name), {int}, name)
        self.assertLessEqual(kinds["ms"], {float, int})
        self.assertEqual(kinds["clean"], {bool})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
