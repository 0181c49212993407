"""The image of docker/Dockerfile, made without docker: image_check.py [SBOM_OUT].

Runs the Dockerfile line by line, each stage in a fresh Debian of its own (fresh_debian.py, made as slim as Debian's image), then starts what came
out of it as a container would: its user, its environment, a root that cannot be written, a volume, a network of its own. Every instruction that is
not understood ends the check. Run by ./dev check-install as root where no docker is; needs the network of Debian's packages."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from fresh_debian import CACHE, Container, Tree, chroot, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(meshd VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
COMPRESSED_AT_MOST = 150e6
# What Debian's slim images leave out, of their own files and of every package that is installed later.
SLIM = """path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/groff/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/linda/*
path-exclude /usr/share/locale/*
"""
RUN = {"program": {"format": "numpy", "text": "def f(x): return jnp.tanh(x).sum()"}, "arguments": [[0.5, 1.0]]}


def instructions(text):
    """[(name, rest)] with continuations joined, in order."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [tuple(line.strip().split(maxsplit=1)) for line in joined.splitlines()]


class Stage:
    """One stage: a tree and what its instructions have set."""

    def __init__(self, tree):
        self.tree = tree
        self.path = tree.path
        self.environment, self.folder, self.user = {}, "/", "root"
        self.volumes, self.entrypoint, self.command, self.health = [], [], [], None
        (self.path / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True, exist_ok=True)
        (self.path / "etc/dpkg/dpkg.cfg.d/docker").write_text(SLIM)
        for name in ("man", "info", "groff", "lintian", "linda", "locale"):
            shutil.rmtree(self.path / "usr/share" / name, ignore_errors=True)
        for file in (self.path / "usr/share/doc").rglob("*"):
            if file.is_file() and file.name != "copyright":
                file.unlink()
        (self.path / "etc/apt/apt.conf.d/docker-clean").write_text('DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };\n')

    def there(self, path):
        return self.path / str(pathlib.PurePosixPath(self.folder) / path).lstrip("/")

    def run(self, line):
        binds = {}
        while match := re.match(r"--mount=(\S+)\s+", line):
            what = dict(pair.split("=", 1) for pair in match.group(1).split(","))
            assert set(what) == {"type", "target"} and what["type"] == "cache", line
            kept = CACHE / "mounts" / what["target"].strip("/").replace("/", "-")
            kept.mkdir(parents=True, exist_ok=True)
            binds[kept] = what["target"]
            line = line[match.end():]
        assert self.user == "root", "the stages of this Dockerfile run as root"
        chroot(self.path, ["/bin/sh", "-c", f"cd {shlex.quote(self.folder)} && {line}"], self.environment, binds)

    def copy(self, line, stages, ignored):
        words = shlex.split(line)
        source = ROOT
        if words[0].startswith("--from="):
            source = stages[words.pop(0).removeprefix("--from=")].path
        *names, target = words
        for name in names:
            place = source / name.lstrip("/")
            if place.is_dir():
                shutil.copytree(place, self.there(target), symlinks=True, dirs_exist_ok=True,
                                ignore=lambda folder, inside: [one for one in inside if pathlib.Path(folder) == ROOT and one in ignored])
            else:
                self.there(target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(place, self.there(target))


def build(trees):
    """Runs the Dockerfile; the last stage."""
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text().split()
    arguments, stages, stage = {}, {}, None
    for name, rest in instructions((ROOT / "docker/Dockerfile").read_text()):
        say(f"{name} {rest[:110]}")
        if name == "ARG":
            word, _, value = rest.partition("=")
            arguments[word] = value
        elif name == "FROM":
            image, *names = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match.group(1)], rest).split()
            assert image.split("@")[0] == "debian:12-slim", image
            tree = Tree()
            trees.append(tree.__enter__())
            stage = Stage(tree)
            stages[names[1] if names else ""] = stage
        elif name == "RUN":
            stage.run(rest)
        elif name == "COPY":
            stage.copy(rest, stages, ignored)
        elif name == "WORKDIR":
            stage.folder = rest
            stage.there("").mkdir(parents=True, exist_ok=True)
        elif name == "ENV":
            stage.environment.update(pair.split("=", 1) for pair in shlex.split(rest))
        elif name == "USER":
            stage.user = rest
        elif name == "VOLUME":
            stage.volumes.append(rest)
        elif name == "HEALTHCHECK":
            stage.health = json.loads(rest.partition("CMD ")[2])
        elif name == "ENTRYPOINT":
            stage.entrypoint = json.loads(rest)
        elif name == "CMD":
            stage.command = json.loads(rest)
        else:
            assert name == "EXPOSE", f"{name} is not known to image_check.py"
    return stage


def compressed_bytes(path):
    with subprocess.Popen(["tar", "-C", str(path), "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*", "-c", "."], stdout=subprocess.PIPE) as tar:
        zipped = subprocess.Popen(["gzip", "-6"], stdin=tar.stdout, stdout=subprocess.PIPE)
        count = 0
        while block := zipped.stdout.read(1 << 20):
            count += len(block)
        assert zipped.wait() == 0
    assert tar.returncode == 0
    return count


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def runs_as_a_container(stage):
    uid, gid = next((line.split(":")[2], line.split(":")[3]) for line in (stage.path / "etc/passwd").read_text().splitlines() if line.split(":")[0] == stage.user)
    assert uid != "0"
    with tempfile.TemporaryDirectory() as folder:
        volumes = {}
        for target in stage.volumes:  # a new volume is a copy of what the image has there
            here = pathlib.Path(folder) / target.strip("/").replace("/", "-")
            shutil.copytree(stage.path / target.lstrip("/"), here)
            os.chown(here, int(uid), int(gid))
            here.chmod((stage.path / target.lstrip("/")).stat().st_mode & 0o7777)
            volumes[here] = target
        # Without tokens it refuses to listen on all addresses, as the Dockerfile says.
        with Container(stage.path, stage.entrypoint + stage.command, stage.environment, volumes, f"{uid}:{gid}") as refused:
            assert refused.process.wait(60) != 0
        environment = {**stage.environment, "MESHD_INSECURE": "1", "MESHD_LOG_LEVEL": "warn"}
        with Container(stage.path, stage.entrypoint + stage.command, environment, volumes, f"{uid}:{gid}") as container:
            def healthy():
                assert container.process.poll() is None, "the server ended"
                done = container.inside(stage.health, capture_output=True, text=True)
                return done is not None and done.returncode == 0
            until(healthy, "HEALTHCHECK succeeds")
            answer = container.outside(["curl", "-sS", "--fail-with-body", "--json", json.dumps(RUN), "http://127.0.0.1:8080/v1/run"], check=True, capture_output=True).stdout
            assert round(json.loads(answer)["results"][0]["data"], 4) == 1.2237, answer
            assert container.inside(["touch", "/usr/bin/new"], capture_output=True).returncode != 0, "the root cannot be written"
            os.kill(container.leader(), signal.SIGTERM)
            assert container.process.wait(60) == 0, "docker stop ends it with 0"


def main():
    trees = []
    try:
        stage = build(trees)
        runs_as_a_container(stage)
        size = compressed_bytes(stage.path)
        say(f"the image: {size / 1e6:.1f} MB compressed, {int(subprocess.run(['du', '-sbx', str(stage.path)], check=True, capture_output=True, text=True).stdout.split()[0]) / 1e6:.0f} MB on the disk")
        assert size < COMPRESSED_AT_MOST, size
        document = json.loads(subprocess.run(["/usr/bin/python3", str(ROOT / "docker/sbom.py"), "--version", VERSION, "--root", str(stage.path)], check=True, capture_output=True, text=True).stdout)
        say(f"its bill of materials: {len(document['packages'])} packages")
        if sys.argv[1:]:
            pathlib.Path(sys.argv[1]).write_text(json.dumps(document, indent=1) + "\n")
    finally:
        for tree in trees:
            tree.__exit__()


if __name__ == "__main__":
    main()
