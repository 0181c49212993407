"""Histories of clients of the real binary under kills, pauses, restarts and dropped connections: nothing is wrong with any of them.
SEED=n repeats the choices of one history, though not the times at which things happen."""
import collections
import os
import pathlib
import sys
import tempfile

from histories import checked

LONG = os.environ.get("LONG") == "1"
COUNT = 2000 if LONG else 100 if "MESHD_LONG" in os.environ else 4
SESSIONS, OPERATIONS = (8, 200) if "MESHD_LONG" in os.environ else (4, 80)


def main():
    first = int(os.environ.get("SEED", "1"))
    seeds = [first] if "SEED" in os.environ else range(first, first + COUNT)
    faults, outcomes = collections.Counter(), collections.Counter()
    kept = pathlib.Path(tempfile.gettempdir()) / "meshd-history.json"
    for seed in seeds:
        wrong, history, happened = checked(sys.argv[1], seed, SESSIONS, OPERATIONS, keep=kept)
        faults.update(happened)
        outcomes.update(operation["outcome"] if operation["kind"] == "job" else operation["kind"] for operation in history["operations"])
        if wrong:
            print(f"SEED={seed}: {len(wrong)} rules are broken; the history is in {kept}")
            print("\n".join(text[:2000] for text in wrong[:10]))
            return 1
    print(f"{len(seeds)} histories, faults {dict(faults)}, operations {dict(outcomes)}: nothing is wrong")
    # A history without faults or without jobs that were done would show nothing.
    assert faults["kill"] and faults["drop"] and outcomes["ok"] > 10 * len(seeds) and outcomes["stream"] and outcomes["maybe"], "nothing was tried"
    return 0


sys.exit(main())
