"""clients_test.py BINARY [--shim LIBRARY] [--part N PARTS]: histories of clients of the real binary under faults: nothing is wrong with any of them. The
library of the fault shim adds broken syncs and a clock that jumps, the right to mount a full disk. Of so many parts of all seeds one is run.
SEED=n repeats the choices of one history, though not the times at which things happen."""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

from histories import checked

LONG = os.environ.get("LONG") == "1"
COUNT = 2000 if LONG else 100 if "MESHD_LONG" in os.environ else 4
SESSIONS, OPERATIONS = (8, 200) if "MESHD_LONG" in os.environ else (4, 80)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--shim")
    parser.add_argument("--part", nargs=2, type=int, default=(1, 1))
    return parser.parse_args()


def main():
    given = options()
    first = int(os.environ.get("SEED", "1"))
    part, parts = given.part
    seeds = [first] if "SEED" in os.environ else [seed for seed in range(first, first + COUNT) if seed // 2 % parts == part - 1]
    faults, outcomes = collections.Counter(), collections.Counter()
    for seed in seeds:
        kept = pathlib.Path(tempfile.gettempdir()) / f"meshd-history-{seed}.json"
        wrong, history, happened = checked(given.binary, seed, SESSIONS, OPERATIONS, keep=kept, shim=given.shim)
        faults.update(happened)
        outcomes.update(operation["outcome"] if operation["kind"] == "job" else operation["kind"] for operation in history["operations"])
        if wrong:
            print(f"SEED={seed}: {len(wrong)} rules are broken; the history is in {kept}")
            print("\n".join(text[:2000] for text in wrong[:10]))
            return 1
    print(f"{len(seeds)} histories, faults {dict(faults)}, operations {dict(outcomes)}: nothing is wrong")
    assert len(seeds) < 20 or (all(faults.values()) and outcomes["maybe"]), "a fault was not tried"
    # A history without faults or without jobs that were done would show nothing.
    assert sum(faults.values()) >= len(seeds) and outcomes["ok"] > 10 * len(seeds) and outcomes["stream"], "nothing was tried"
    return 0


sys.exit(main())
