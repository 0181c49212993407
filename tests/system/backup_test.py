"""meshd backup, restore and fsck on the data of a real server: backup_test.py BINARY. MESHD_LONG=1 (./dev check-long) judges how long jobs take
beside a backup."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server import Meshd
from shared_server import Shared, ok, refused, until

BINARY = sys.argv[1]
VALUES = [[1.5, -2.0, 3.0], [4.0, 5.0, 6.25]]


def meshd(*arguments):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Backup(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="meshd-backup-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = self.folder / "data"
        with Meshd(BINARY, data=str(self.folder)) as server:
            self.array = server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [2, 3], "data": VALUES})[2]["id"]
            self.while_serving = [meshd("backup", "--data", self.data, self.folder / "no"), meshd("fsck", "--data", self.data)]

    def values_in(self, folder):
        with Meshd(BINARY, data=str(folder)) as server:
            status, _, document = server.ask("GET", f"/v1/arrays/{self.array}/data", headers={"Accept": "application/json"})
        self.assertEqual(status, 200)
        return document["data"]

    def test_a_server_keeps_its_folder_to_itself(self):
        for (code, _, mistake), expected in zip(self.while_serving, ["in use by another meshd", "a server uses the folder"]):
            self.assertEqual(code, 1)
            self.assertIn(expected, mistake)

    def test_restored_data_is_what_was_backed_up(self):
        code, said, _ = meshd("backup", "--data", self.data, self.folder / "copy")
        self.assertEqual(code, 0)
        self.assertIn(f"{self.folder}/copy is a copy of {self.data}", said)
        shutil.rmtree(self.data)
        (self.folder / "again").mkdir()
        code, said, _ = meshd("restore", self.folder / "copy", "--data", self.folder / "again" / "data")
        self.assertEqual(code, 0)
        self.assertIn("arrays: 1, shards: 1", said)
        self.assertEqual(self.values_in(self.folder / "again"), VALUES)

    def test_fsck_finds_a_changed_byte_and_restore_refuses_it(self):
        code, said, _ = meshd("fsck", "--data", self.data)
        self.assertEqual((code, said.splitlines()[-1]), (0, "problems: 0"))
        blob = next(path for path in (self.data / "blobs").rglob("*") if path.is_file())
        blob.write_bytes(b"X" + blob.read_bytes()[1:])
        code, said, _ = meshd("fsck", "--data", self.data)
        self.assertEqual(code, 1)
        self.assertIn(f"array {self.array}, shard 0", said)
        self.assertIn("problems: 1", said)
        code, _, mistake = meshd("restore", self.data, "--data", self.folder / "copy")
        self.assertEqual(code, 1)
        self.assertIn("the backup is damaged", mistake)

    def test_no_folder_is_overwritten(self):
        target = self.folder / "target"
        target.mkdir()
        (target / "notes").write_text("mine")
        for command in (["backup", "--data", self.data, target], ["restore", self.data, "--data", target]):
            code, _, mistake = meshd(*command)
            self.assertEqual(code, 1)
            self.assertIn("has something in it already", mistake)
        self.assertEqual([path.name for path in target.iterdir()], ["notes"])
        code, _, mistake = meshd("fsck", "--data", target)
        self.assertEqual(code, 1)
        self.assertIn("there is no data in the folder", mistake)


class WhileServing(unittest.TestCase):
    def test_backup_is_one_moment_of_a_server_that_goes_on(self):
        program = ('func.func @main(%t: !stablehlo.token, %a: tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>) { '
                   '%0 = "stablehlo.outfeed"(%a, %t) <{outfeed_config = "q"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token '
                   "return %0, %a : !stablehlo.token, tensor<4xf32> }")
        with Shared("root one admin\nann two\n") as shared:
            session = ok(shared.ask("two", "POST", "/v1/sessions"), 201)["id"]
            stop, made, took = threading.Event(), [], []

            def work():
                while not stop.is_set():
                    number = len(made)
                    job = {"program": {"text": program}, "arguments": [[number] * 4], "results": {"encoding": "array"}}
                    began = time.monotonic()
                    made.append(ok(shared.ask("two", "POST", f"/v1/sessions/{session}/jobs", job))["results"][0]["array"])
                    took.append(time.monotonic() - began)

            worker = threading.Thread(target=work)
            worker.start()
            folders, before = [], []
            for name in ("a", "b.2"):
                until(lambda: len(made) > 5 * (1 + len(folders)), "jobs run")
                before.append(len(made))
                done = ok(shared.ask("one", "POST", f"/v1/admin/backup?name={name}"), 201)
                self.assertEqual(done, {"name": name, "folder": f"{shared.server.folder}/data/backups/{name}"})
                folders.append(done["folder"])
            stop.set()
            worker.join()
            print(f"{len(took)} jobs beside two backups: one took {max(took) * 1000:.0f} ms at most")
            if "MESHD_LONG" in os.environ:
                self.assertLessEqual(max(took), 0.1, "a backup stops nobody for 100 ms")
            refused(shared.ask("one", "POST", "/v1/admin/backup?name=a"), 409, "conflict")
            refused(shared.ask("two", "POST", "/v1/admin/backup"), 403, "forbidden")
            for wrong in ("..", ".hidden", "a%2Fb", "", "x" * 101):
                refused(shared.ask("one", "POST", f"/v1/admin/backup?name={wrong}"), 422, "invalid_query")
            named = ok(shared.ask("one", "POST", "/v1/admin/backup"), 201)["name"]
            self.assertRegex(named, r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")
            for folder, at_least in zip(folders, before):
                code, said, _ = meshd("fsck", "--data", folder)
                self.assertEqual(code, 0, said)
                with tempfile.TemporaryDirectory() as again:
                    self.assertEqual(meshd("restore", folder, "--data", again + "/data")[0], 0)
                    with Meshd(BINARY, "--tokens", str(shared.tokens), data=again) as server:
                        two = {"Authorization": "Bearer two"}
                        entries = server.ask("GET", f"/v1/sessions/{session}/effects?limit=1000", headers=two)[2]["items"]
                        self.assertGreaterEqual(len(entries), at_least)
                        # Job i logged i and stored i: in the backup are both, or neither. The last job may have been running: then the
                        # restored server runs it again, and its array has another id.
                        self.assertEqual([entry["values"][0]["data"] for entry in entries], [[i] * 4 for i in range(len(entries))])
                        for number, array in enumerate(made):
                            status, _, document = server.ask("GET", f"/v1/arrays/{array}/data", headers={**two, "Accept": "application/json"})
                            is_last = number == len(entries) - 1
                            self.assertIn(status, (200, 404) if is_last else (200,) if number < len(entries) else (404,))
                            if status == 200:
                                self.assertEqual(document["data"], [number] * 4)


sys.argv[1:] = []
unittest.main()
