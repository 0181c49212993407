#!/usr/bin/env python3
"""starts_test.py BINARY STORAGE_BENCH: how long a start takes, with an empty folder and with 10,000 arrays and 100,000 finished jobs, and that
durable effects come at their rate. Judged by MESHD_LONG=1 (./dev check-long) alone; without it nothing is run."""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from server import Meshd, ok

BINARY, BENCH = sys.argv[1:3]
STARTS = 5


def start(name, data, limit):
    """Ready in time: from the start of the process to the first 200 of /readyz, the median of five."""
    took = []
    for _ in range(STARTS):
        server = Meshd(BINARY, data=data)
        began = time.monotonic()
        server.start()
        took.append(time.monotonic() - began)
        ok(server.ask("GET", "/v1/jobs?limit=1"))
        assert server.stop() == 0
    print(f"{name}: ready after {', '.join(f'{each:.3f}' for each in took)} s; {limit} s are promised")
    return statistics.median(took) <= limit


def rates():
    """Durable effects a second and their acknowledgement, as ./dev bench storage measures them."""
    done = subprocess.run([BENCH], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)
    found = re.search(r"^16 sessions x 8 under way, 8 effects each: (\d+) effects/s.*p99 ([\d.]+) ms", done.stdout, re.MULTILINE)
    return int(found.group(1)) >= 50_000 and float(found.group(2)) <= 10


def main():
    if "MESHD_LONG" not in os.environ:
        print("figures are judged by ./dev check-long")
        return 77
    with tempfile.TemporaryDirectory(prefix="meshd-test-") as folder:
        empty, full = pathlib.Path(folder, "empty"), pathlib.Path(folder, "full")
        for made in (empty, full):
            made.mkdir()
        subprocess.run([BENCH, "--fill", full / "data"], check=True)
        held = {"empty": start("an empty folder", str(empty), 0.3), "full": start("10,000 arrays and 100,000 jobs", str(full), 2), "rates": rates()}
    assert all(held.values()), held
    return 0


sys.exit(main())
