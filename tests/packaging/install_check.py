"""The package on a fresh Debian with systemd, from the first install to the purge: install_check.py PACKAGE.deb [PACKAGE_BEFORE.deb].

The Debian is made by debootstrap and booted in namespaces (fresh_debian.py), so that the unit runs under the real systemd with all that it
forbids. Where no package before is given, one with an older version, another default of the conffile and a marked unit is made of PACKAGE.
Run by ./dev check-install as root; needs the network of Debian's packages."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from fresh_debian import CACHE, Booted, Tree, chroot, say

SECONDS_TO_ANSWER = 60  # from apt-get install to the first result, with the packages that it depends on already here
URL = "http://127.0.0.1:8080"
RUN = {"program": {"format": "numpy", "text": "def f(x, w): return jnp.tanh(x @ w).sum(axis=0)"}, "arguments": [[[1, 2, 3], [4, 5, 6]], [[0.1, 0], [0, 0.1], [0.1, 0.1]]]}
# What generates machine code in meshd (a small `while` of many turns) and what may in oneDNN (products of bfloat16), under the unit's rules.
GENERATES = {"program": {"format": "numpy", "text": """def f(a):
  n = jnp.int32(0)
  while n < 200000:
    n = n + 1
  return n, (a.astype(jnp.bfloat16) @ a.astype(jnp.bfloat16)).astype(jnp.float32).sum()"""}, "arguments": [{"dtype": "float32", "shape": [64, 64], "data": [[1.0] * 64] * 64}]}
# What may be there after a purge that was not before the install: logs, caches, and the user.
LEFT = ("/var/log/", "/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid",
        "/var/lib/systemd/", "/etc/.pwd.lock", "/var/backups/", "/etc/ld.so.cache", "/root/", "/tmp/", "/run/", "/dev/", "/proc/", "/sys/")


def package_before(package, folder):
    """A package like this one, of an older version, with another conffile and another unit."""
    tree = pathlib.Path(folder) / "before"
    subprocess.run(["dpkg-deb", "-R", package, str(tree)], check=True)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    control.write_text("\n".join("Version: 0.0.1" if line.startswith("Version:") else line for line in lines) + "\n")
    with open(tree / "etc/default/meshd", "a") as conffile:
        conffile.write("\n# A line of the package before.\n")
    unit = tree / "usr/lib/systemd/system/meshd.service"
    unit.write_text(unit.read_text().replace("[Service]\n", "[Service]\nEnvironment=MESHD_LOG_COMPILES=1\n"))
    (tree / "DEBIAN/md5sums").unlink(missing_ok=True)
    out = pathlib.Path(folder) / "before.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(out)], check=True, stdout=subprocess.DEVNULL)
    return out


class Machine:
    """What the tests ask of the booted Debian."""

    def __init__(self, booted):
        self.booted = booted
        self.output = booted.output

    def sh(self, script):
        return self.output(["sh", "-ec", script])

    def apt(self, *arguments):
        # All packages are in apt's archive, and there is no network inside.
        return self.output(["apt-get", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *arguments])

    def ask(self, path, body=None, *options):
        """The answer's document, or None while nobody answers."""
        data = ["--json", json.dumps(body)] if body is not None else []
        done = self.booted.run(["curl", "-sS", "-m", "30", "--fail-with-body", *data, *options, URL + path], check=False, capture_output=True, text=True)
        if done.returncode == 7:  # nobody listens
            return None
        assert done.returncode == 0, f"{path}: exit {done.returncode} {done.stdout} {done.stderr}"
        return json.loads(done.stdout) if done.stdout[:1] in "{[" else done.stdout

    def state(self, *names):
        text = self.output(["systemctl", "show", "meshd.service", "-p", ",".join(names)])
        values = dict(line.split("=", 1) for line in text.splitlines())
        return [values[name] for name in names]

    def until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}\n{self.sh('journalctl -b --no-pager -n 60; systemctl status meshd --no-pager || true')}")
            time.sleep(0.1)

    def answers(self):
        return self.until(lambda: self.ask("/readyz"), "the server answers")

    def process(self):
        """The number of the server's process."""
        return self.until(lambda: [pid for pid in self.state("MainPID") if pid != "0"], "the server has a process")[0]

    def files(self):
        return set(self.sh("find / -xdev \\( -path /proc -o -path /sys -o -path /dev \\) -prune -o -print").splitlines())

    def is_there(self, path):
        return self.booted.run(["test", "-e", path], check=False).returncode == 0


def first_install(machine, deb):
    began = time.monotonic()
    machine.apt("install", deb)
    result = machine.until(lambda: machine.ask("/v1/run", RUN), "a first result")
    seconds = time.monotonic() - began
    assert [round(value, 4) for value in result["results"][0]["data"]] == [1.1415, 1.2626], result
    say(f"from the package to the first answer: {seconds:.1f} s")
    assert seconds < SECONDS_TO_ANSWER, seconds
    assert machine.state("ActiveState", "SubState", "Type", "User", "StatusText", "UnitFileState") == [
        "active", "running", "notify", "meshd", "serving on port 8080", "enabled"]
    assert machine.sh("stat -c '%U %G %a' /var/lib/meshd /etc/meshd") == "meshd meshd 700\nroot meshd 750\n"
    assert machine.sh("ps -o user= -C meshd").split() == ["meshd"]
    assert "/etc/default/meshd" in machine.sh("dpkg-query -W -f '${Conffiles}' meshd")


def works_under_the_rules_of_its_unit(machine):
    results = machine.ask("/v1/run", GENERATES)["results"]
    assert [result["data"] for result in results] == [200000, 262144], results
    assert machine.ask("/v1/arrays/by-name/kept/data", {"dtype": "float32", "shape": [3], "data": [1, 2, 3]}, "-X", "PUT")
    pid = machine.process()
    assert machine.sh(f"grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/{pid}/status").split() == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2"]


def reload_reads_the_tokens_again(machine):
    before = machine.process()
    machine.sh("printf 'ann first-token\\n' | install -m 0640 -g meshd /dev/stdin /etc/meshd/tokens")
    machine.sh("printf '\\nMESHD_TOKENS=/etc/meshd/tokens\\nMESHD_DEVICES=4\\n' >>/etc/default/meshd; systemctl restart meshd")
    asked = ["-o", "/dev/null", "-w", "%{http_code}", "-H"]

    def status(token):
        return machine.sh(f"curl -sS -m 30 {' '.join(asked)} 'Authorization: Bearer {token}' {URL}/v1/meshes")
    assert (status("first-token"), status("second-token")) == ("200", "401")
    machine.sh("printf 'ann second-token\\n' | install -m 0640 -g meshd /dev/stdin /etc/meshd/tokens; systemctl reload meshd")
    machine.until(lambda: status("second-token") == "200", "the new token is taken")
    assert status("first-token") == "401"
    machine.sh("sed -i /MESHD_TOKENS=.etc.meshd/d /etc/default/meshd; rm /etc/meshd/tokens; systemctl restart meshd")
    assert machine.state("ActiveState") == ["active"] and machine.process() != before


def kept_array(machine):
    return machine.ask("/v1/arrays/by-name/kept/data?format=json")["data"]


def upgrade_keeps_data_and_settings(machine, deb):
    before = machine.process()
    machine.apt("install", deb)
    machine.answers()
    assert before != machine.process(), "an upgrade starts the new binary"
    assert "MESHD_LOG_COMPILES" not in machine.state("Environment")[0]
    settings = machine.sh("cat /etc/default/meshd")
    assert "MESHD_DEVICES=4" in settings.splitlines() and machine.is_there("/etc/default/meshd.dpkg-dist"), settings
    assert kept_array(machine) == [1, 2, 3]
    assert len(machine.ask("/v1/devices")["items"]) == 4


def killed_or_hanging_it_is_started_again(machine):
    machine.sh("mkdir -p /run/systemd/system/meshd.service.d; printf '[Service]\\nWatchdogSec=2\\n' >/run/systemd/system/meshd.service.d/test.conf; "
               "systemctl daemon-reload; systemctl restart meshd")
    for signal in ("KILL", "STOP"):
        pid = machine.process()
        machine.sh(f"kill -{signal} {pid}")

        def is_ready_again():
            state, now = machine.state("ActiveState", "MainPID")  # at once: a new process is not ready yet
            return state == "active" and now not in (pid, "0")
        machine.until(is_ready_again, f"a new process after SIG{signal}", 120)
        assert kept_array(machine) == [1, 2, 3]
    assert "Watchdog timeout" in machine.sh("journalctl -b --no-pager -u meshd"), "a server that hangs is found by the watchdog"
    machine.sh("rm -r /run/systemd/system/meshd.service.d; systemctl daemon-reload; systemctl restart meshd")


def wrong_settings_are_not_tried_again(machine):
    machine.sh("echo MESHD_DEVICE=4 >>/etc/default/meshd")
    assert machine.booted.run(["systemctl", "restart", "meshd"], check=False, capture_output=True).returncode != 0
    assert machine.state("ActiveState", "NRestarts", "ExecMainStatus") == ["failed", "0", "64"]
    assert "MESHD_DEVICES" in machine.sh("journalctl -b --no-pager -u meshd -n 20"), "the log names the nearest option"
    machine.sh("sed -i /MESHD_DEVICE=/d /etc/default/meshd; systemctl restart meshd")


def whoever_disables_it_keeps_it_disabled(machine, deb):
    machine.sh("systemctl disable --now meshd")
    machine.apt("install", "--reinstall", deb)
    assert machine.state("UnitFileState") == ["disabled"]
    machine.sh("systemctl enable --now meshd")


def removed_it_leaves_data_and_settings(machine, deb):
    machine.apt("remove", "meshd")
    assert not machine.is_there("/usr/bin/meshd") and machine.ask("/readyz") is None
    assert machine.is_there("/etc/default/meshd") and machine.is_there("/var/lib/meshd")
    machine.apt("install", deb)
    machine.answers()
    assert kept_array(machine) == [1, 2, 3]


def purged_it_leaves_nothing(machine, before):
    # What a package depends on and apt itself recommends (ca-certificates) would stay.
    machine.apt("purge", "--autoremove", "-o", "APT::AutoRemove::RecommendsImportant=false", "meshd")
    left = sorted(path for path in machine.files() - before if not path.startswith(LEFT))
    assert not left, f"{len(left)} files are left: {left[:20]}"
    assert "meshd" not in machine.sh("systemctl list-unit-files --no-pager --no-legend")
    assert machine.sh("dpkg-query -W -f '${db:Status-Status}' meshd 2>/dev/null || true") in ("", "not-installed")
    assert machine.sh("getent passwd meshd"), "the user stays: files of its number may lie in backups"


def main():
    package = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, Tree() as tree:
        before = pathlib.Path(sys.argv[2]).resolve() if sys.argv[2:] else package_before(package, folder)
        archives = CACHE / "archives"
        archives.mkdir(parents=True, exist_ok=True)
        (archives / "partial").mkdir(exist_ok=True)
        debs = tree.path / "srv"
        shutil.copyfile(package, debs / "meshd.deb")
        shutil.copyfile(before, debs / "before.deb")
        apt = ["apt-get", "-y", "-qq", "--no-install-recommends"]
        binds = {archives: "/var/cache/apt/archives"}
        chroot(tree.path, ["apt-get", "update", "-qq"], binds=binds)
        chroot(tree.path, [*apt, "install", "systemd", "systemd-sysv", "dbus", "curl", "procps"], binds=binds, stdout=subprocess.DEVNULL)
        chroot(tree.path, [*apt, "install", "--download-only", "/srv/before.deb"], binds=binds, stdout=subprocess.DEVNULL)
        for archive in archives.glob("*.deb"):
            shutil.copyfile(archive, tree.path / "var/cache/apt/archives" / archive.name)
        with Booted(tree.path) as booted:
            machine = Machine(booted)
            files = machine.files()
            first_install(machine, "/srv/before.deb")
            works_under_the_rules_of_its_unit(machine)
            reload_reads_the_tokens_again(machine)
            upgrade_keeps_data_and_settings(machine, "/srv/meshd.deb")
            killed_or_hanging_it_is_started_again(machine)
            wrong_settings_are_not_tried_again(machine)
            whoever_disables_it_keeps_it_disabled(machine, "/srv/meshd.deb")
            removed_it_leaves_data_and_settings(machine, "/srv/meshd.deb")
            purged_it_leaves_nothing(machine, files)
        say("install, upgrade, reload, kill, remove and purge: as they should")


if __name__ == "__main__":
    main()
