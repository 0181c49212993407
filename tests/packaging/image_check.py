"""The image of docker/Dockerfile, made without docker: image_check.py [--mpi] [SBOM_OUT].

Runs the Dockerfile line by line, each stage in a fresh Debian of its own (fresh_debian.py, made as slim as Debian's image), then starts what came
out of it as a container would: its user, its environment, a root that cannot be written, a volume, a network of its own. Every instruction that is
not understood ends the check. With --mpi it is the image with MPI (--build-arg MPI=1), of which two ranks are started as compose.hosts.yaml and
kubernetes/hosts.yaml start them: in two containers with a network between them, by ssh. Run by ./dev check-install as root where no docker is; needs the network of Debian's packages."""
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

import yaml

from fresh_debian import CACHE, Container, Tree, chroot, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"  # whatever the builder says it is
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
        self.environment, self.arguments, self.folder, self.user = {}, {}, "/", "root"
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
            if what["type"] == "bind":
                assert set(what) == {"type", "source", "target"}, line
                binds[ROOT / what["source"]] = what["target"]
            else:
                assert set(what) == {"type", "target"} and what["type"] == "cache", line
                kept = CACHE / "mounts" / what["target"].strip("/").replace("/", "-")
                kept.mkdir(parents=True, exist_ok=True)
                binds[kept] = what["target"]
            line = line[match.end():]
        assert self.user == "root", "the stages of this Dockerfile run as root"
        chroot(self.path, ["/bin/sh", "-c", f"cd {shlex.quote(self.folder)} && {line}"], {**self.arguments, **self.environment}, binds)

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


def build(trees, given):
    """Runs the Dockerfile with these arguments of the build; the last stage."""
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text().split()
    arguments, stages, stage = {}, {}, None
    for name, rest in instructions((ROOT / "docker/Dockerfile").read_text()):
        say(f"{name} {rest[:110]}")
        if name == "ARG":
            word, _, value = rest.partition("=")
            if stage is None:
                arguments[word] = given.get(word, value)
            else:
                assert word in arguments and not value, "an argument of a stage is one of the whole file"
                stage.arguments[word] = arguments[word]
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


def user_of(stage):
    uid, gid = next((line.split(":")[2], line.split(":")[3]) for line in (stage.path / "etc/passwd").read_text().splitlines() if line.split(":")[0] == stage.user)
    assert uid != "0"
    return uid, gid


def new_volume(stage, here, target):
    """A copy of what the image has there; `here`, unless it is there already."""
    if not here.exists():
        shutil.copytree(stage.path / target.lstrip("/"), here)
        os.chown(here, *map(int, user_of(stage)))
        here.chmod((stage.path / target.lstrip("/")).stat().st_mode & 0o7777)
    return here


def runs_as_a_container(stage):
    uid, gid = user_of(stage)
    with tempfile.TemporaryDirectory() as folder:
        volumes = {new_volume(stage, pathlib.Path(folder) / target.strip("/").replace("/", "-"), target): target for target in stage.volumes}
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
            info = container.outside(["curl", "-sS", "--fail-with-body", "http://127.0.0.1:8080/v1/info"], check=True, capture_output=True).stdout
            assert json.loads(info)["commit"] == COMMIT[:12], info
            assert container.inside(["touch", "/usr/bin/new"], capture_output=True).returncode != 0, "the root cannot be written"
            os.kill(container.leader(), signal.SIGTERM)
            assert container.process.wait(60) == 0, "docker stop ends it with 0"


# Waits for the address that join() gives, which a container has from its beginning.
AWAIT_NETWORK = "until grep -q 10.77.0 /proc/net/fib_trie; do sleep 0.1; done; exec \"$@\""


def join(containers):
    """A network between them: 10.77.0.1, 10.77.0.2."""
    first, second = (until(container.leader, "the container is there") for container in containers)
    subprocess.run(["nsenter", "--target", str(first), "--net", "ip", "link", "add", "ranks", "type", "veth", "peer", "name", "ranks", "netns", str(second)], check=True)
    for number, container in enumerate(containers, 1):
        container.outside(["ip", "link", "set", "ranks", "up"], check=True)
        container.outside(["ip", "address", "add", f"10.77.0.{number}/24", "dev", "ranks"], check=True)


class Hosts:
    """Containers of the image with volumes that they share by name, and names for each other."""

    def __init__(self, stage, folder):
        self.stage, self.folder, self.user = stage, pathlib.Path(folder), ":".join(user_of(stage))
        (stage.path / "etc/hosts").write_text("127.0.0.1 localhost\n10.77.0.1 near\n10.77.0.2 far\n")

    def container(self, host, command, volumes=(), environment=None, binds=None):
        temporary = self.folder / f"tmp-{host}"
        temporary.mkdir(exist_ok=True)
        temporary.chmod(0o1777)
        mounts = {temporary: "/tmp", **(binds or {})}
        for volume in volumes:
            name, target = volume.split(":")[:2]
            mounts[new_volume(self.stage, self.folder / name, target)] = target
        return Container(self.stage.path, command, {**self.stage.environment, **(environment or {})}, mounts, self.user, host)


def both_ranks_answer(near):
    token = ["-H", "Authorization: Bearer " + TOKEN]

    def asked(path, *more):
        return near.outside(["curl", "-sS", "--fail-with-body", *token, f"http://127.0.0.1:8080{path}", *more], capture_output=True, text=True)
    devices = until(lambda: near.process.poll() is None and (done := asked("/v1/devices")).returncode == 0 and json.loads(done.stdout)["items"], "it answers")
    assert [device["process_index"] for device in devices] == [0] * 4 + [1] * 4, devices
    body = {"program": {"format": "numpy", "text": "def f(x): return (x * 2).sum()"}, "arguments": [list(range(8))],
            "mesh": {"axis_names": ["x"], "devices": list(range(8))}, "in_shardings": [{"spec": ["x"]}], "profile": True}
    answer = json.loads(asked("/v1/run", "--json", json.dumps(body)).stdout)
    assert answer["results"][0]["data"] == 56 and answer["profile"]["between_processes"]["arguments"] > 0, answer


TOKEN = "a-token-of-the-check-of-images"


def ranks_run_as_containers(stage):
    """The services of compose.hosts.yaml, then the launcher of the MPIJob with what its operator would add."""
    services = yaml.safe_load((ROOT / "docker/compose.hosts.yaml").read_text())["services"]
    # A command that is no list is split as a shell would split it.
    commands = {name: service["entrypoint"] + (shlex.split(service["command"]) if isinstance(service["command"], str) else service["command"]) for name, service in services.items()}
    with tempfile.TemporaryDirectory() as folder:
        hosts = Hosts(stage, folder)
        with hosts.container("keys", commands["keys"], services["keys"]["volumes"]) as keys:
            assert keys.process.wait(60) == 0, "keys are made"
        with hosts.container("near", ["sh", "-c", AWAIT_NETWORK, "sh", *commands["near"]], services["near"]["volumes"], services["near"]["environment"]) as near, \
                hosts.container("far", commands["far"], services["far"]["volumes"]) as far:
            until(lambda: (done := far.inside(services["far"]["healthcheck"]["test"][1:], capture_output=True)) and done.returncode == 0, "sshd listens in `far`")
            join([near, far])
            both_ranks_answer(near)
            assert far.inside(["ssh", "-o", "UserKnownHostsFile=/dev/null", "-o", "KnownHostsCommand=none", "far", "true"], capture_output=True).returncode != 0, \
                "a host that does not show the key of the job is refused"
            os.kill(near.leader(), signal.SIGTERM)
            assert near.process.wait(60) == 0, "docker stop ends it with 0"
        say("two ranks as compose.hosts.yaml starts them")
        job = next(one for one in yaml.safe_load_all((ROOT / "docker/kubernetes/hosts.yaml").read_text()) if one["kind"] == "MPIJob")["spec"]["mpiReplicaSpecs"]
        launcher, worker = (job[name]["template"]["spec"]["containers"][0] for name in ("Launcher", "Worker"))
        binds = {}
        for name, file, text in (("mpi", "hostfile", "far slots=1\n"), ("tokens", "tokens", f"ann {TOKEN}\n")):
            binds[hosts.folder / name] = {"mpi": "/etc/mpi", "tokens": "/run/tokens"}[name]
            (hosts.folder / name).mkdir()
            (hosts.folder / name / file).write_text(text)
        volumes = ["keys:/home/meshd/.ssh", "job:/var/lib/meshd"]
        environment = {one["name"]: one["value"] for one in launcher["env"]}
        with hosts.container("near", ["sh", "-c", AWAIT_NETWORK, "sh", *launcher["command"], *launcher["args"]], volumes, environment, binds) as near, \
                hosts.container("far", worker["command"], volumes) as far:
            join([near, far])
            both_ranks_answer(near)
            os.kill(near.leader(), signal.SIGTERM)
            assert near.process.wait(60) == 1, "a launcher that was stopped is started again"
        say("two ranks as the MPIJob of kubernetes/hosts.yaml starts them")


def main():
    trees = []
    is_mpi = "--mpi" in sys.argv[1:]
    outputs = [word for word in sys.argv[1:] if word != "--mpi"]
    try:
        stage = build(trees, {"COMMIT": COMMIT, **({"MPI": "1"} if is_mpi else {})})
        runs_as_a_container(stage)
        if is_mpi:
            ranks_run_as_containers(stage)
        size = compressed_bytes(stage.path)
        say(f"the image: {size / 1e6:.1f} MB compressed, {int(subprocess.run(['du', '-sbx', str(stage.path)], check=True, capture_output=True, text=True).stdout.split()[0]) / 1e6:.0f} MB on the disk")
        assert size < COMPRESSED_AT_MOST, size
        document = json.loads(subprocess.run(["/usr/bin/python3", str(ROOT / "docker/sbom.py"), "--version", VERSION, "--root", str(stage.path)], check=True, capture_output=True, text=True).stdout)
        say(f"its bill of materials: {len(document['packages'])} packages")
        if outputs:
            pathlib.Path(outputs[0]).write_text(json.dumps(document, indent=1) + "\n")
    finally:
        for tree in trees:
            tree.__exit__()


if __name__ == "__main__":
    main()
