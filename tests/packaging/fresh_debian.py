"""A fresh Debian 12 in a folder, for tests of packages and images: made by debootstrap from the packages of the machine's own apt sources and kept as
a tar file outside of the repository; used through chroot, or booted with its own systemd in namespaces. Needs root.

All mounts are in namespaces of their own and go with the last process in them, so that removing a tree can reach nothing outside of it."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("MESHD_DEBIAN_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "meshd")
SUITE = "bookworm"
KEPT_DAYS = 30  # then a new one is made, with newer packages
WORDS = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")  # of the environment, for apt


def say(text):
    print(text, file=sys.stderr, flush=True)


def sources():
    """The lines of sources.list with which this machine reads Debian 12's own packages."""
    form = "$(ORIGIN)|$(CODENAME)|$(SITE)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    text = subprocess.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], check=True, capture_output=True, text=True).stdout
    lines = []
    for origin, codename, _, uri, release, component in sorted({tuple(line.split("|")) for line in text.splitlines()}):
        if origin == "Debian" and codename.startswith(SUITE) and component == "main":
            lines.append(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {uri} {release} {component}")
    if not lines:
        raise SystemExit(f"fresh_debian.py: the apt sources of this machine have no Debian {SUITE} (apt-get update)")
    return lines


def base():
    """The tar file of the smallest Debian that has apt."""
    path = CACHE / f"{SUITE}-minbase.tar"
    if path.exists() and time.time() - path.stat().st_mtime < KEPT_DAYS * 86_400:
        return path
    say("debootstrap: some minutes, once")
    CACHE.mkdir(parents=True, exist_ok=True)
    lines = sources()
    mirror = next(line.split()[2] for line in lines if line.split()[3] == SUITE)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        tree = pathlib.Path(folder) / "tree"
        subprocess.run(["debootstrap", "--variant=minbase", SUITE, str(tree), mirror], check=True, stdout=sys.stderr)
        (tree / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")
        chroot(tree, ["apt-get", "update", "-qq"])
        for package in (tree / "var/cache/apt/archives").glob("*.deb"):
            package.unlink()
        made = pathlib.Path(folder) / "made.tar"
        subprocess.run(["tar", "-C", str(tree), "--numeric-owner", "-cf", str(made), "."], check=True)
        made.rename(path)
    return path


class Tree:
    """`with Tree() as tree`: a fresh Debian in the folder `tree.path`, removed at the end."""

    def __enter__(self):
        archive = base()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="meshd-debian-", dir=os.environ.get("MESHD_DEBIAN_TMP", "/var/tmp")))
        self.path = self.folder / "root"
        self.path.mkdir()
        subprocess.run(["tar", "-C", str(self.path), "--numeric-owner", "-xf", str(archive)], check=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


PREPARE = r"""
set -e
R=$1; shift
mount --make-rprivate /
mount --bind "$R" "$R"
mount -t proc proc "$R/proc"
for name in sys sysrq-trigger; do
  [ -e "$R/proc/$name" ] || continue
  mount --bind "$R/proc/$name" "$R/proc/$name"
  mount -o remount,bind,ro "$R/proc/$name"
done
mount -t tmpfs -o mode=755 tmpfs "$R/dev"
mkdir "$R/dev/pts" "$R/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$R/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
for name in null zero full random urandom tty; do touch "$R/dev/$name"; mount --bind "/dev/$name" "$R/dev/$name"; done
while [ "$1" != -- ]; do mkdir -p "$R/$2"; mount --bind "$1" "$R/$2"; shift 2; done
shift
"""
# Loopback of a network namespace is down at first. SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP.
LOOPBACK_UP = r"""/usr/bin/python3 -c '
import fcntl, socket, struct
any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flags, = struct.unpack_from("16xH", fcntl.ioctl(any_socket, 0x8913, struct.pack("16sH14x", b"lo", 0)))
fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))'
"""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def chroot(tree, command, environment=None, binds=None, user=None, check=True, **options):
    """Runs the command in the tree, with the machine's network. `binds`: {folder here: folder there}. `user`: uid:gid."""
    variables = {"PATH": PATH, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
                 "LC_ALL": "C.UTF-8", **{word: os.environ[word] for word in WORDS if word in os.environ}, **(environment or {})}
    if pathlib.Path("/etc/resolv.conf").exists():
        shutil.copyfile("/etc/resolv.conf", pathlib.Path(tree) / "etc/resolv.conf")
    pairs = [word for pair in (binds or {}).items() for word in map(str, pair)]
    script = PREPARE + 'exec chroot ' + (f'--userspec={user} ' if user else '') + '"$R" env -i "$@"'
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script, "bash", str(tree), *pairs, "--",
                           *(f"{name}={value}" for name, value in variables.items()), *command], check=check, **options)


class Container:
    """`with Container(tree, command, ...) as container`: the command in the tree, which it cannot write to but for `binds`, with a network of its own
    that has only loopback at first, and the name `host`."""

    def __init__(self, tree, command, environment, binds, user, host="container"):
        pairs = [word for pair in binds.items() for word in map(str, pair)]
        script = PREPARE + LOOPBACK_UP + f'hostname {host}\n' + 'mount -o remount,bind,ro "$R"\n' + f'exec chroot --userspec={user} "$R" env -i "$@"'
        self.user = user
        self.variables = [f"{name}={value}" for name, value in {"PATH": PATH, **environment}.items()]
        self.command = ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", "bash", "-c", script, "bash", str(tree), *pairs, "--", *self.variables, *command]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        # Its first process by itself: one that has changed its user does not end with unshare.
        if self.process.poll() is None and (leader := self.leader()) is not None:
            os.kill(leader, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def leader(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def inside(self, command, **options):
        """Runs the command in the container; None before there is one."""
        leader = self.leader()
        if leader is None:
            return None
        uid, _, gid = self.user.partition(":")
        return subprocess.run(["nsenter", "--target", str(leader), "--mount", "--pid", "--net", "--root", "--wdns=/", f"--setuid={uid}", f"--setgid={gid}",
                               "env", "-i", *self.variables, *command], **options)

    def outside(self, command, **options):
        """Runs a command of this machine in the container's network."""
        return subprocess.run(["nsenter", "--target", str(self.leader()), "--net", *command], **options)


# The rest of what a container manager prepares for systemd. Its control group is one of its own, where the machine has the hierarchy v2.
BOOT = PREPARE + r"""
mount -t sysfs -o ro sysfs "$R/sys"
mount -t tmpfs tmpfs "$R/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
mount -t tmpfs tmpfs "$R/run"
mount -t tmpfs tmpfs "$R/tmp"
# The tree becomes the root of the mount namespace: in a chroot the kernel makes no user namespaces.
cd "$R"
mkdir -p "$R/run/outside"
pivot_root . run/outside
exec env -i container=meshd-test PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv --bounding-set=-sys_time,-sys_module,-sys_boot,-sys_rawio,-syslog sh -c \
  'cd /; umount -l /run/outside; rmdir /run/outside; exec /lib/systemd/systemd --log-target=journal --show-status=0'
"""


class Booted:
    """`with Booted(tree.path) as machine`: the tree (which has systemd) with its own systemd as process 1, and a network of its own that has only
    loopback."""

    def __init__(self, tree):
        self.tree = pathlib.Path(tree)

    def __enter__(self):
        for unit in ("console-getty.service", "apt-daily.timer", "apt-daily-upgrade.timer"):
            link = self.tree / "etc/systemd/system" / unit
            if not link.is_symlink():
                link.symlink_to("/dev/null")
        self.group = self.enter_group()
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child", "bash", "-c", BOOT,
                                         "bash", str(self.tree), "--"], stdin=subprocess.DEVNULL, preexec_fn=self.join_group)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            answer = self.run(["systemctl", "is-system-running"], check=False, capture_output=True, text=True)
            if answer is not None and answer.stdout.strip() in ("running", "degraded"):
                return self
            time.sleep(0.2)
        self.__exit__()
        raise RuntimeError("systemd did not boot in namespaces of this machine")

    def enter_group(self):
        """A new control group in the hierarchy v2, or None."""
        for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            if pathlib.Path(mount, "cgroup.controllers").exists():
                group = pathlib.Path(mount) / f"meshd-test-{os.getpid()}"
                group.mkdir(exist_ok=True)
                return group
        return None

    def join_group(self):
        if self.group:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def __exit__(self, *_):
        self.process.kill()  # unshare's --kill-child ends systemd, and the kernel all that it started
        self.process.wait()
        if self.group:
            deadline = time.monotonic() + 30
            while self.group.exists() and time.monotonic() < deadline:
                try:
                    for folder, _, _ in os.walk(self.group, topdown=False):
                        os.rmdir(folder)
                except OSError:
                    time.sleep(0.1)

    def leader(self):
        """The process that is systemd inside, or None before it is there."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if children and pathlib.Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
            return children[0]
        return None

    def run(self, command, check=True, **options):
        """Runs the command inside, in a process group of its own: what it signals is not this test. None before systemd is there."""
        leader = self.leader()
        if leader is None:
            return None
        variables = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        return subprocess.run(["nsenter", "--target", leader, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wdns=/", "env", "-i",
                               *variables, *command], check=check, start_new_session=True, **options)

    def output(self, command):
        """What the command prints; fails with all that it printed."""
        done = self.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}"
        return done.stdout
