"""meshd backup, restore and fsck on the data of a real server: backup_test.py BINARY. MESHD_LONG=1 (./dev check-long): one of 1 GiB of arrays and
a database of 200 MB beside four clients, and how long their jobs take is judged."""
import contextlib
import hashlib
import http.client
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server import Meshd
from shared_server import Shared, ok, refused, until

BINARY = sys.argv[1]
LONG = "MESHD_LONG" in os.environ
WORKERS = 4 if LONG else 2
STORED, STORED_BYTES = (256, 4 << 20) if LONG else (4, 1 << 18)  # arrays that a backup copies beside those of jobs
# Jobs whose answers of about 1 MB each are rows: arrays are linked on one disk, a database is copied in any case.
ANSWERS = 220 if LONG else 6
ANSWER_BYTES = 180000 * 4 * 4 // 3
ANSWER = {"program": {"format": "numpy", "text": "def f(x):\n    return jnp.zeros((180000,), jnp.float32) + x\n"}, "results": {"encoding": "base64"}}
VALUES = [[1.5, -2.0, 3.0], [4.0, 5.0, 6.25]]


def meshd(*arguments):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=600)
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


@unittest.skipUnless(os.geteuid() == 0 or LONG, "needs root, which is another user")
class ByRoot(unittest.TestCase):
    NOBODY = 65534

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="meshd-root-"))
        self.addCleanup(shutil.rmtree, self.folder)
        os.chown(self.folder, self.NOBODY, self.NOBODY)
        self.data = self.folder / "data"

    def use_by_root(self):
        with Meshd(BINARY, data=str(self.folder)) as server:
            return ok(server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [2, 3], "data": VALUES}), 201)["id"]

    def test_what_root_makes_belongs_to_the_owner_of_the_folder(self):
        array = self.use_by_root()
        self.assertEqual(meshd("backup", "--data", self.data, self.folder / "copy")[0], 0)
        shutil.rmtree(self.data)
        self.assertEqual(meshd("restore", self.folder / "copy", "--data", self.data)[0], 0)
        self.use_by_root()
        made = [self.data, *self.data.rglob("*"), *(self.folder / "copy").rglob("*")]
        self.assertGreater(len(made), 60)
        self.assertEqual([str(path) for path in made if path.lstat().st_uid != self.NOBODY], [])
        # Its owner goes on with it.
        with Meshd(BINARY, data=str(self.folder), launcher=["setpriv", f"--reuid={self.NOBODY}", f"--regid={self.NOBODY}", "--clear-groups"]) as server:
            self.assertEqual(ok(server.ask("GET", f"/v1/arrays/{array}/data", headers={"Accept": "application/json"}))["data"], VALUES)

    def test_a_folder_of_others_is_not_said_to_be_empty(self):
        os.chown(self.folder, 0, 0)
        self.use_by_root()
        for command in ("fsck", "backup"):
            done = subprocess.run([BINARY, command, "--data", str(self.data), *([str(self.folder / "no")] if command == "backup" else [])], user=self.NOBODY,
                                  group=self.NOBODY, extra_groups=[], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("cannot be looked into", done.stderr)
            self.assertIn("Permission denied", done.stderr)


class WhileServing(unittest.TestCase):
    def test_backup_that_a_kill_cut_off_is_taken_for_none(self):
        rounds = 40 if LONG else 6
        with Shared("root one admin\n") as shared:
            for _ in range(30):
                ok(shared.ask("one", "POST", "/v1/arrays", {"dtype": "float32", "shape": [2, 3], "data": VALUES}), 201)
            cut_off = 0
            for number in range(60):
                if number >= rounds and cut_off > 0:
                    break
                folder = pathlib.Path(shared.server.folder, "data", "backups", f"b{number}")

                def back_up(name=folder.name):
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        shared.ask("one", "POST", f"/v1/admin/backup?name={name}")

                asking = threading.Thread(target=back_up)
                asking.start()
                # At another file of the copy each time, as soon as it is there.
                seen = ["incomplete", "meshd.db", "blobs", "blobs/tmp"][number % 4]
                while asking.is_alive() and not (folder / seen).exists():
                    pass
                shared.server.stop(signal.SIGKILL)
                asking.join()
                code, said, mistake = meshd("fsck", "--data", folder)
                if code == 0:
                    self.assertIn("arrays: 30, shards: 30", said)
                elif folder.exists() and any(folder.iterdir()):
                    cut_off += 1
                    self.assertIn("holds a copy that was cut off", mistake)
                    for command in (["restore", folder, "--data", folder.parent / "again"], ["serve", "--listen", "127.0.0.1:0", "--data", folder]):
                        code, said, mistake = meshd(*command)
                        self.assertEqual(code, 1)
                        self.assertIn("holds a copy that was cut off", said + mistake)
                    self.assertFalse((folder.parent / "again").exists())
                shared.server.start()
                if folder.exists() and any(folder.iterdir()):
                    refused(shared.ask("one", "POST", f"/v1/admin/backup?name={folder.name}"), 409, "conflict")
            self.assertGreater(cut_off, 0, "no kill came in the middle of a backup")
            name = ok(shared.ask("one", "POST", "/v1/admin/backup?name=whole"), 201)["folder"]
            self.assertEqual(meshd("fsck", "--data", name)[0], 0)

    def test_backup_is_one_moment_of_a_server_that_goes_on(self):
        with Shared("root one admin\nann two\n") as shared:
            stored = {}
            for number in range(STORED):
                data = random.Random(number).randbytes(STORED_BYTES)
                made = shared.ask("two", "POST", f"/v1/arrays?dtype=uint8&shape={STORED_BYTES}", data, {"Content-Type": "application/octet-stream"})
                stored[ok(made, 201)["id"]] = hashlib.sha256(data).digest()
            session = ok(shared.ask("two", "POST", "/v1/sessions"), 201)["id"]
            for number in range(ANSWERS):
                ok(shared.ask("two", "POST", f"/v1/sessions/{session}/jobs", {**ANSWER, "arguments": [number]}))
            stop = threading.Event()
            workers = [Worker(shared, stop) for _ in range(WORKERS)]
            for worker in workers:
                worker.start()
            folders, before = [], []
            for name in ("a", "b.2"):
                enough = 5 * (1 + len(folders))
                until(lambda enough=enough: all(len(worker.made) > enough or worker.wrong for worker in workers), "jobs run")
                before.append([len(worker.made) for worker in workers])
                done = ok(shared.ask("one", "POST", f"/v1/admin/backup?name={name}"), 201)
                self.assertEqual(done, {"name": name, "folder": f"{shared.server.folder}/data/backups/{name}"})
                folders.append(done["folder"])
            stop.set()
            for worker in workers:
                worker.join()
            self.assertEqual([worker.wrong for worker in workers if worker.wrong], [])
            took = [value for worker in workers for value in worker.took]
            database = min(pathlib.Path(folder, "meshd.db").stat().st_size for folder in folders)
            self.assertGreater(database, ANSWERS * ANSWER_BYTES)
            print(f"{len(took)} jobs of {WORKERS} clients beside two backups of {STORED * STORED_BYTES >> 20} MiB of arrays and a database of "
                  f"{database >> 20} MiB: one took {max(took) * 1000:.0f} ms at most")
            refused(shared.ask("one", "POST", "/v1/admin/backup?name=a"), 409, "conflict")
            refused(shared.ask("two", "POST", "/v1/admin/backup"), 403, "forbidden")
            for wrong in ("..", ".hidden", "a%2Fb", "", "x" * 101):
                refused(shared.ask("one", "POST", f"/v1/admin/backup?name={wrong}"), 422, "invalid_query")
            named = ok(shared.ask("one", "POST", "/v1/admin/backup"), 201)["name"]
            self.assertRegex(named, r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")
            for folder, at_least in zip(folders, before):
                self.assert_is_one_moment(shared, folder, workers, at_least, stored)
            if LONG:
                self.assertLessEqual(max(took), 0.1, "a backup stops nobody for 100 ms")

    def assert_is_one_moment(self, shared, folder, workers, at_least, stored):
        code, said, _ = meshd("fsck", "--data", folder)
        self.assertEqual(code, 0, said)
        with tempfile.TemporaryDirectory() as again:
            self.assertEqual(meshd("restore", folder, "--data", again + "/data")[0], 0)
            with Meshd(BINARY, "--tokens", str(shared.tokens), data=again) as server:
                two = {"Authorization": "Bearer two"}
                for array, digest in stored.items():
                    status, _, data = server.ask("GET", f"/v1/arrays/{array}/data", headers=two)
                    self.assertTrue(status == 200 and hashlib.sha256(data).digest() == digest, f"{array}: {status}")
                for worker, least in zip(workers, at_least):
                    entries = effects_of(server, worker.session, two)
                    self.assertGreaterEqual(len(entries), least)
                    # Job i logged i and stored i: in the backup are both, or neither. The last job may have been running: then the
                    # restored server runs it again, and its array has another id.
                    self.assertEqual([entry["values"][0]["data"] for entry in entries], [[i] * 4 for i in range(len(entries))])
                    for number, array in enumerate(worker.made):
                        status, _, document = server.ask("GET", f"/v1/arrays/{array}/data", headers={**two, "Accept": "application/json"})
                        is_last = number == len(entries) - 1
                        self.assertIn(status, (200, 404) if is_last else (200,) if number < len(entries) else (404,))
                        if status == 200:
                            self.assertEqual(document["data"], [number] * 4)


def effects_of(server, session, headers):
    """All entries of its log."""
    entries, page = [], None
    while page is None or page:
        after = entries[-1]["sequence"] if entries else 0
        page = ok(server.ask("GET", f"/v1/sessions/{session}/effects?limit=1000&after={after}", headers=headers))["items"]
        entries += page
    return entries


class Worker(threading.Thread):
    """A client with a session of its own, whose job i logs and stores i."""
    PROGRAM = ('func.func @main(%t: !stablehlo.token, %a: tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>) { '
               '%0 = "stablehlo.outfeed"(%a, %t) <{outfeed_config = "q"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token '
               "return %0, %a : !stablehlo.token, tensor<4xf32> }")

    def __init__(self, shared, stop):
        super().__init__()
        self.shared, self.stop, self.made, self.took, self.wrong = shared, stop, [], [], None
        self.session = ok(shared.ask("two", "POST", "/v1/sessions"), 201)["id"]

    def run(self):
        try:
            while not self.stop.is_set():
                self.work()
        except Exception as error:  # noqa: BLE001: the test tells it
            self.wrong = repr(error)

    def work(self):
        job = {"program": {"text": self.PROGRAM}, "arguments": [[len(self.made)] * 4], "results": {"encoding": "array"}}
        began = time.monotonic()
        self.made.append(ok(self.shared.ask("two", "POST", f"/v1/sessions/{self.session}/jobs", job))["results"][0]["array"])
        self.took.append(time.monotonic() - began)


sys.argv[1:] = []
unittest.main()
