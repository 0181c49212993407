#!/usr/bin/env python3
"""Holds a built meshd to Shardy through POST /v1/programs/{id}:explain: check_explained.py BINARY [--update].

The cases listed in passing/propagation.txt have Shardy's shardings over HTTP too. moves_more.txt lists cases that move more bytes than
Shardy; it only shrinks, and --update takes those off that do so no longer."""
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
    binary, update = sys.argv[1], "--update" in sys.argv
    told = io.StringIO()
    with Meshd(binary) as server, contextlib.redirect_stdout(told):
        sys.argv = ["explain.py", "--url", server.url, str(HERE / "propagation")]
        explain.main()
    lines = told.getvalue().splitlines()
    passing = set((HERE / "passing/propagation.txt").read_text().split())
    lost = [line for line in lines if (found := re.match(r"FAIL ([^:]+):", line)) and found[1] in passing]
    more = {found[1]: line for line in lines if (found := re.match(r"MOVES MORE ([^:]+):", line))}
    known = set((HERE / "moves_more.txt").read_text().split())
    worse = [line for name, line in more.items() if name not in known]
    if update:
        (HERE / "moves_more.txt").write_text("".join(f"{name}\n" for name in sorted(known & set(more))))
    print("\n".join(lost + worse + lines[-2:]))
    return 1 if lost or worse or not passing else 0


sys.exit(main())
