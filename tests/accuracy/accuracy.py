#!/usr/bin/env python3
"""Our numbers and XLA's against exact ones: accuracy.py URL [functions|cases|sums|solves|zeros ...] [-k WORD] [--write PAGE].

Prints a table for each, in Markdown, and fails where XLA is closer and the table knows no reason. With --write the tables
replace what is behind the mark in a page. See README.md beside this file.
"""
import argparse
import contextlib
import importlib
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance" / "make"))
import case  # noqa: E402,F401  (before JAX starts: it sets the count of its devices)
import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
TABLES = ["functions", "cases", "sums", "solves", "zeros"]


MARK = "<!-- written by tests/accuracy/accuracy.py -->\n"


class Both(io.StringIO):
    """What is printed, kept."""

    def write(self, text):
        sys.__stdout__.write(text)
        return super().write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tables", nargs="*", help=" ".join(TABLES))
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("--write", type=pathlib.Path)
    given = parser.parse_args()
    good, printed = True, Both()
    with contextlib.redirect_stdout(printed):
        for name in given.tables or TABLES:
            print(f"## {name}\n", flush=True)
            good &= importlib.import_module(name).check(given.url, given.word)
    if given.write:
        before, _, _ = given.write.read_text().partition(MARK)
        given.write.write_text(before + MARK + "\n" + printed.getvalue().rstrip() + "\n")
    sys.exit(0 if good else 1)


main()
