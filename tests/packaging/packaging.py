"""What the tests of this folder share: places, and the names that the binary knows."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
BINARY = sys.argv[1]
sys.path.insert(0, str(ROOT / "tests/system"))


def variables():
    """The names MESHD_... that `meshd serve` reads."""
    text = subprocess.run([BINARY, "serve", "--help"], check=True, capture_output=True, text=True).stdout
    names = set(re.findall(r"\bMESHD_[A-Z_]+\b", text))
    assert len(names) > 20, names
    return names


def project_version():
    return re.search(r"project\(meshd VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def packages_for(use):
    lines = (line.split() for line in (DOCKER / "packages.txt").read_text().splitlines() if not line.startswith("#"))
    return [line[0] for line in lines if use in line[1:]]


def run(*command, **options):
    """What the command prints; fails with it where the command fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
    return done.stdout
