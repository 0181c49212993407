#!/usr/bin/env python3
"""Holds a built meshd to Shardy through POST /v1/programs/{id}:explain: check_explained.py BINARY.

The cases listed in passing/propagation.txt have Shardy's shardings over HTTP too, and no case at all moves more bytes than Shardy."""
import contextlib
import io
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
sys.path.insert(0, str(HERE))
import explain  # noqa: E402
from server import Meshd  # noqa: E402


def main():
    told = io.StringIO()
    with Meshd(sys.argv[1]) as server, contextlib.redirect_stdout(told):
        sys.argv = ["explain.py", "--url", server.url]
        explain.main()
    listed = set((HERE / "passing/propagation.txt").read_text().split())
    lost = [line for line in told.getvalue().splitlines() if (found := re.match(r"FAIL ([^:]+):", line)) and found[1] in listed]
    more = [line for line in told.getvalue().splitlines() if line.startswith("MOVES MORE")]
    print("\n".join(lost + more + told.getvalue().splitlines()[-2:]))
    return 1 if lost or more or not listed else 0


sys.exit(main())
