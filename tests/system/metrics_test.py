"""What /metrics says: metrics_test.py BINARY. The text is parsed line by line as the Prometheus text format 0.0.4 has it, with promtool too
where it is installed; jobs appear in it, and in the log, with how long they took."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from server import Meshd, ok

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
