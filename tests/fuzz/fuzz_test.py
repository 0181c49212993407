#!/usr/bin/env python3
"""fuzz_test.py TARGET FORMAT: reads the seeds of a format and what is kept of it (corpus.py), then damages them for a second; under MESHD_LONG=1
(./dev check-fuzz) for 60, with LONG=1 for 8 hours. The input that ended it is kept as /tmp/meshd-fuzz-FORMAT; FUZZ_SEED draws other damage. To look at
it again: FUZZ_FORMAT=FORMAT TARGET 0 1 FILE, in a folder of its own. Once it is mended the input becomes a line of kept/FORMAT.txt:
`python3 corpus.py FORMAT FILE` writes it there."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import corpus

TARGET, FORMAT = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
SECONDS = 28800 if os.environ.get("LONG") == "1" else 60 if "MESHD_LONG" in os.environ else 1


def main():
    inputs = corpus.seeds(FORMAT) + corpus.kept(FORMAT)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, one in enumerate(inputs):
            names.append(f"{folder}/{number}")
            pathlib.Path(names[-1]).write_bytes(one)
        done = subprocess.run([TARGET, str(SECONDS), os.environ.get("FUZZ_SEED", "1"), *names], cwd=folder, env={**os.environ, "FUZZ_FORMAT": FORMAT}, check=False)
        if done.returncode:
            found = f"/tmp/meshd-fuzz-{FORMAT}"
            shutil.copy(f"{folder}/fuzz_last_input", found)
            print(f"ended with {done.returncode}; the input is {found}")
    return done.returncode and 1


sys.exit(main())
