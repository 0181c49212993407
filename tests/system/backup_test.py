"""meshd backup, restore and fsck on the data of a real server: backup_test.py BINARY."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from server import Meshd

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


sys.argv[1:] = []
unittest.main()
