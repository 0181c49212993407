#!/usr/bin/env python3
"""keep.py TARGET FORMAT SECONDS: damages the seeds of a format for so long, and writes the shortest inputs that reach what the seeds do not to
kept/FORMAT.txt, beside those that are there. TARGET is of the preset fuzz, whose code says where an input has been."""
import os
import pathlib
import subprocess
import sys
import tempfile

import corpus

TARGET, FORMAT, SECONDS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
MOST_BYTES = 12 * 1024  # of all that is kept of a format
LONGEST = 2 * 1024


def found(folder, seconds, inputs):
    """Those that reached new code, in the order in which they did."""
    work, out = folder / "work", folder / "found"
    for each in (work, out):
        each.mkdir(exist_ok=True)
    for path in out.iterdir():
        path.unlink()
    names = []
    for number, one in enumerate(inputs):
        names.append(work / str(number))
        names[-1].write_bytes(one)
    subprocess.run([TARGET, seconds, "1", *names], cwd=work, env={**os.environ, "FUZZ_FORMAT": FORMAT, "FUZZ_FOUND": str(out)}, check=True)
    return [path.read_bytes() for path in sorted(out.iterdir(), key=lambda path: int(path.name))]


def main():
    seeds, kept = corpus.seeds(FORMAT), corpus.kept(FORMAT)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        reached = [one for one in found(folder, SECONDS, seeds + kept) if one not in seeds and one not in kept and len(one) <= LONGEST]
        known = seeds + kept
        short = [one for one in found(folder, "0", known + sorted(reached, key=len)) if one not in known]
    room = MOST_BYTES - sum(map(len, kept))
    added = 0
    for one in short:
        room -= len(one)
        if room < 0:
            break
        corpus.keep(FORMAT, one)
        added += 1
    print(f"{FORMAT}: {len(reached)} inputs reached new code, {len(short)} short ones reach as much, {added} are kept")


main()
