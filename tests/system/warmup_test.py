"""A restart does not make clients wait for compilations: warmup_test.py BINARY. Programs of the conformance suite run, the server starts again
and has compiled them before they are asked for; their answers have the same bytes. Records that are damaged are removed and cost nothing else.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import run as conformance  # noqa: E402
from server import Meshd, ok, until  # noqa: E402

BINARY = sys.argv[1]
ROOT = pathlib.Path(conformance.HERE)
LISTED = [ROOT / f"{name}.json" for name in (ROOT / "passing" / "cases.txt").read_text().split()]
# Three quarters of the compiler's cache of 512 are the most that a warm-up fills.
CASES = [path for path in LISTED if path.parent.name == "programs"] + [path for path in LISTED if path.parent.parent.name == "ops"][::10]
CASES = CASES[:250]
assert len(CASES) > 200
# A warm-up ends after a minute, in which a sanitizer compiles less.
if "HAS_SANITIZER" in os.environ:
    CASES = CASES[::5]
ADD = "func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {\n  %0 = stablehlo.add %a, %a : tensor<2xi32>\n  return %0 : tensor<2xi32>\n}"


def figures(server):
    """The samples of the warm-up, by name and outcome."""
    text = server.ask("GET", "/metrics")[2].decode()
    return {name: float(value) for name, value in re.findall(r'^meshd_warmup_(\w+(?:\{outcome="\w+"\})?) (\S+)$', text, re.M)}


def warmed_up(server):
    until(lambda: figures(server)["running"] == 0, "the warm-up is over", 120)
    return figures(server)


def answer_of(server, path):
    case = json.loads(path.read_text())
    request = conformance.request_of(case, path.with_suffix(".mlir").read_text())
    arguments = list(case["arguments"])
    for index in case.get("donated", []):
        arguments[index] = {"array": server.store(case["arguments"][index])}
    status, answer = server.post("/v1/run", {**request, "arguments": arguments})
    assert status == 200, f"{path.stem}: {answer}"
    # Effects that are not ordered are logged in any order.
    effects = answer.get("effects", [])
    ordered = [effect for effect in effects if effect.get("ordered", True)]
    others = sorted(json.dumps(effect, sort_keys=True) for effect in effects if not effect.get("ordered", True))
    return json.dumps([answer["results"], len(ordered), len(others)], sort_keys=True)


def answers(server):
    client = conformance.Server(server.url, 120)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda path: answer_of(client, path), CASES))


def run(server, text=ADD, numbers=(1, 2)):
    value = {"dtype": "int32", "shape": [len(numbers)], "data": list(numbers)}
    return ok(server.ask("POST", "/v1/run", {"program": {"format": "stablehlo", "text": text}, "arguments": [value]}))["results"][0]["data"]


class Warmup(unittest.TestCase):
    def restart(self, server, how=signal.SIGTERM):
        server.stop(how)
        server.start()

    def test_answers_are_the_same_and_nothing_is_compiled_while_a_client_waits(self):
        with Meshd(BINARY) as server:
            before = answers(server)
            made = figures(server)
            self.assertEqual(made['lowerings_total{outcome="hit"}'], 0)
            self.restart(server)
            began = warmed_up(server)
            after = answers(server)
            ended = figures(server)
        different = [path.stem for path, one, other in zip(CASES, before, after) if one != other]
        self.assertEqual(different, [])
        self.assertEqual(began["compiled_total"], made['lowerings_total{outcome="miss"}'])
        self.assertEqual(ended['lowerings_total{outcome="hit"}'], began["compiled_total"])
        self.assertEqual(ended['lowerings_total{outcome="miss"}'], 0)
        self.assertEqual(ended["unusable_total"], 0)
        self.assertEqual(ended["records"], began["compiled_total"])
        print(f"{len(CASES)} cases, {int(began['compiled_total'])} lowerings compiled at the start, {ended['record_bytes'] / 1e6:.1f} MB of records")

    def test_records_outlive_kill_9(self):
        with Meshd(BINARY) as server:
            self.assertEqual(run(server), [2, 4])
            until(lambda: figures(server)["records"] == 1, "the run is recorded")
            self.restart(server, signal.SIGKILL)
            self.assertEqual(warmed_up(server)["compiled_total"], 1)
            self.assertEqual(run(server), [2, 4])
            self.assertEqual(figures(server)['lowerings_total{outcome="hit"}'], 1)

    def test_damaged_records_are_removed_and_logged(self):
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        with Meshd(BINARY, "--log-format", "json", log=log) as server:
            texts = [ADD.replace("add", name) for name in ("add", "multiply", "subtract", "maximum")]
            expected = [run(server, text) for text in texts]
            until(lambda: figures(server)["records"] == 4, "all are recorded")
            server.stop()
            folder = pathlib.Path(server.folder, "data", "warmup")
            self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
            files = sorted(path for path in folder.iterdir() if path.name.startswith("lowered_"))
            self.assertEqual(len(files), 4)
            self.assertEqual({path.stat().st_mode & 0o777 for path in files}, {0o600})
            whole = files[0].read_bytes()
            files[0].write_bytes(whole[:-1])                                   # cut off
            files[1].write_bytes(whole)                                        # another's
            files[2].write_bytes(files[2].read_bytes()[:60] + b"\xff" * 8 + files[2].read_bytes()[68:])  # other bytes
            (folder / "lowered_x.entry").write_bytes(b"")
            (folder / "half.entry.tmp").write_bytes(b"x")
            (folder / "order.entry").write_bytes(b"x")
            server.start()
            seen = warmed_up(server)
            self.assertEqual((seen["compiled_total"], seen["unusable_total"], seen["records"]), (1, 4, 1))
            self.assertEqual([run(server, text) for text in texts], expected)
            until(lambda: figures(server)["records"] == 4, "they are recorded again")
            self.assertFalse((folder / "half.entry.tmp").exists())
        log.seek(0)
        lines = [json.loads(line) for line in log if line.startswith("{")]
        removed = [line for line in lines if "compile_record_removed" in line.values()]
        self.assertEqual(len(removed), 4, lines)
        self.assertTrue(all(line["reason"] for line in removed))

    def test_it_can_be_off(self):
        with Meshd(BINARY) as server:
            run(server)
            until(lambda: figures(server)["records"] == 1, "the run is recorded")
            server.arguments += ["--warmup-bytes", "0"]
            self.restart(server)
            seen = warmed_up(server)
            self.assertEqual((seen["records"], seen["compiled_total"]), (0, 0))
            self.assertEqual(run(server), [2, 4])
            self.assertEqual(figures(server)['lowerings_total{outcome="miss"}'], 1)
            self.assertEqual(list(pathlib.Path(server.folder, "data", "warmup").iterdir()), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
