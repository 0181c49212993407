"""A small disk of its own for the server of a test, which the test can fill."""
import os
import pathlib
import subprocess
import tempfile

MIB = 1 << 20


class SmallDisk:
    """A tmpfs of so many MiB in `folder`, or None there where mounting is not allowed or nothing is asked for."""

    def __init__(self, mebibytes):
        self.folder = None
        if mebibytes == 0:
            return
        self.folder = tempfile.mkdtemp(prefix="meshd-test-")
        self.ballast = pathlib.Path(self.folder, "ballast")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", self.folder], capture_output=True).returncode:
            os.rmdir(self.folder)
            self.folder = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.folder is not None:
            subprocess.run(["umount", self.folder], check=True)
            os.rmdir(self.folder)

    def fill(self):
        """Takes all the room that is left, to a page."""
        with open(self.ballast, "ab", buffering=0) as file:
            size = MIB
            while size >= 4096:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def empty(self):
        self.ballast.unlink(missing_ok=True)
