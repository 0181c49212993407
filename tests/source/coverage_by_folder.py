#!/usr/bin/env python3
"""coverage_by_folder.py FILE: what gcovr's summary says of lines and branches, by folder, and whether it is what is promised: 90 % of the lines
and 80 % of the branches."""
import collections
import json
import pathlib
import sys

LINES, BRANCHES = 90, 80


def part(some, of):
    return 100 * some / of if of else 100.0


def main():
    summary = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folders = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in summary["files"]:
        folder = "/".join(pathlib.PurePath(file["filename"]).parts[:2])
        counts = [file["line_covered"], file["line_total"], file["branch_covered"], file["branch_total"]]
        folders[folder] = [a + b for a, b in zip(folders[folder], counts)]
    for folder, (lines, all_lines, branches, all_branches) in sorted(folders.items()):
        print(f"{folder:24} lines {part(lines, all_lines):5.1f} % of {all_lines:6}, branches {part(branches, all_branches):5.1f} % of {all_branches:6}")
    lines, branches = (part(summary[f"{what}_covered"], summary[f"{what}_total"]) for what in ("line", "branch"))
    print(f"all: lines {lines:.1f} % ({LINES} are promised), branches {branches:.1f} % ({BRANCHES})")
    return 0 if lines >= LINES and branches >= BRANCHES else 1


sys.exit(main())
