#!/usr/bin/env python3
"""Holds a built meshd to the list of conformance cases that pass: check_passing.py BINARY [--update] [--seeds 1 2 3] [--ranks N].

passing/cases.txt has the cases that pass as they are, passing/sharded.txt those that also pass under every seed of random
shardings. Both only grow: a listed case that fails is an error; a case that passes and is not listed is named, and --update adds it. With --ranks the server is N processes under mpirun (docs/hosts.md); cases that several processes refuse
by name do not count.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from hosts_test import MPIRUN  # noqa: E402
from server import Meshd  # noqa: E402

REFUSED_BY_RANKS = "which processes do not exchange yet"


def report(server, seed):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, str(HERE / "run.py"), "--url", server.url, "--json", file.name, "-q", "-j", "4", "--timeout", "120"]
        if seed is not None:
            command += ["--shard", str(seed)]
        subprocess.run(command + ["ops", "programs", "older"], cwd=HERE, stdout=subprocess.DEVNULL, check=False)
        return json.load(open(file.name))


def hold(name, passed, outcome, update):
    """True when nothing that is listed fails, or is not reported at all."""
    path = HERE / "passing" / name
    listed = set(path.read_text().split()) if path.exists() else set()
    lost = sorted(listed - passed)
    gained = sorted(passed - listed)
    refused = [case for case in lost if REFUSED_BY_RANKS in str(outcome.get(case))]
    if refused:
        print(f"{name}: {len(refused)} cases are refused by several processes:", *refused)
    lost = [case for case in lost if case not in refused]
    for case in lost:
        print(f"LOST {name}: {case}: {outcome.get(case, 'not reported')}")
    if gained:
        print(f"{name}: {len(gained)} more cases pass" + ("" if update else " (run with --update to list them)"))
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{case}\n" for case in sorted(listed | passed)))
    return not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--seeds", nargs="*", default=["1", "2", "3"])
    parser.add_argument("--disable-passes", help="of the server")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    launcher = [*MPIRUN, str(options.ranks)] if options.ranks > 1 else []
    more = ["--disable-passes", options.disable_passes] if options.disable_passes else []
    with Meshd(options.binary, *more, launcher=launcher) as server:
        plain = report(server, None)
        passed = {case for case, problem in plain.items() if problem is None}
        good = hold("cases.txt", passed, plain, options.update)
        sharded, problems = set(plain), {}
        for seed in options.seeds:
            outcome = report(server, seed)
            problems.update({case: f"seed {seed}: {problem}" for case, problem in outcome.items() if problem and problem != "skipped"})
            sharded &= {case for case, problem in outcome.items() if problem is None}
        good = hold("sharded.txt", sharded, problems, options.update) and good
        if server.process.poll() is not None:
            print(f"the server ended with {server.process.returncode}")
            good = False
    print(f"{len(passed)} of {len(plain)} cases pass, {len(sharded)} under seeds {' '.join(options.seeds)} too")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
