#!/usr/bin/env python3
"""README.md from rows.json, open.json and the tests: page.py --write makes it, page.py --check compares.

Every row has a test named by its id, or an entry in open.json that says what is missing; never both."""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """# Reference behaviours

Made by `page.py --write` from `rows.json` (what is promised), the tests beside it and `open.json` (what is not done, and why). A test
is a function named by its row; `ctest -R behaviours` runs them against the built binary, `python3 mesh_rows.py BINARY M4` those of one row.
"""


def tests_by_row():
    found = {}
    for file in sorted(HERE.glob("*_rows.py")):
        for name in re.findall(r"^def (behaviour_\w+)\(", file.read_text(encoding="utf-8"), re.M):
            row = name.split("_")[1]
            found.setdefault(row, []).append((file.name, name))
    return found


def mistakes(rows, tests, still_open):
    ids = [row["id"] for row in rows]
    out = [f"{row}: no test and no entry in open.json" for row in ids if row not in tests and row not in still_open]
    out += [f"{row}: a test and an entry in open.json" for row in ids if row in tests and row in still_open]
    out += [f"{row}: is no row" for row in list(tests) + list(still_open) if row not in ids]
    out += [f"{row}: open without a reason" for row, why in still_open.items() if len(why) < 10]
    out += [f"{len(ids)} rows instead of 175"] if len(set(ids)) != 175 else []
    names = [name for entries in tests.values() for _, name in entries]
    return out + [f"{name}: defined twice" for name in set(names) if names.count(name) > 1]


def page(rows, tests, still_open):
    out = HEAD + f"\n{len(rows) - len(still_open)} of {len(rows)} rows are held by tests, {len(still_open)} are open.\n"
    section = None
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            out += f"\n## {section}\n\n| # | Behaviour of the reference | Here | Check | Held by |\n|---|---|---|---|---|\n"
        held = "<br>".join(f"`{file}`: {name.split('_', 2)[2].replace('_', ' ')}" for file, name in tests.get(row["id"], []))
        held = held or "**open**: " + still_open[row["id"]]
        cells = [row["id"], row["behaviour"], row["service"], row["check"], held]
        out += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return out


def main():
    rows = json.loads((HERE / "rows.json").read_text(encoding="utf-8"))
    still_open = json.loads((HERE / "open.json").read_text(encoding="utf-8"))
    tests = tests_by_row()
    wrong = mistakes(rows, tests, still_open)
    for line in wrong:
        print(line)
    if wrong:
        sys.exit(1)
    made = page(rows, tests, still_open)
    if "--write" in sys.argv:
        (HERE / "README.md").write_text(made, encoding="utf-8")
    elif (HERE / "README.md").read_text(encoding="utf-8") != made:
        print("README.md is not what page.py --write makes")
        sys.exit(1)
    print(f"{len(rows) - len(still_open)} rows held, {len(still_open)} open")


main()
