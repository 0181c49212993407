"""A memory control group for the server of a test."""
import contextlib
import pathlib
import subprocess
import tempfile

from server import tell_not_tried, until

GIB = 1 << 30


class Group:
    """A memory control group (version 1 or 2), or nothing where none can be made, which is said, and a failure under MESHD_LONG=1."""

    def __init__(self, size=GIB):
        self.size = size
        for folder, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            try:
                self.path = pathlib.Path(tempfile.mkdtemp(prefix="meshd-test-", dir=folder))
            except OSError:
                continue
            try:
                # A plain folder has no such files, and not everybody who can make a group can move into it.
                if (self.path / "cgroup.procs").exists() and (self.path / limit).exists():
                    (self.path / limit).write_text(str(size))
                    if subprocess.run([*self.launcher(), "true"], capture_output=True).returncode == 0:
                        return
            except OSError:
                pass
            self.path.rmdir()
        self.path = None
        tell_not_tried("no memory control group can be made here: --memory in its place, and what the kernel would kill is not seen")

    def launcher(self):
        return [] if self.path is None else ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"]

    def options(self):
        return ["--memory", str(self.size)] if self.path is None else []

    def kills(self):
        if self.path is None:
            return 0
        for file in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(OSError):
                return sum(int(line.split()[1]) for line in (self.path / file).read_text().splitlines() if line.startswith("oom_kill "))
        return 0

    def remove(self):
        if self.path is not None:
            until(lambda: not (self.path / "cgroup.procs").read_text(), "the group is empty")
            self.path.rmdir()
