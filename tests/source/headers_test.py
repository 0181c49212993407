#!/usr/bin/env python3
"""Compiles each header alone: headers_test.py COMPILER BUILD_DIR. What a header uses it includes or declares itself."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def flags(build):
    """Include paths, definitions and warnings of the build, from its compile commands."""
    seen = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        for at, word in enumerate(words):
            taken = [word, words[at + 1]] if word == "-isystem" else [word]
            if word.startswith(("-I", "-D", "-W", "-std")) or word == "-isystem":
                if taken not in seen:
                    seen.append(taken)
    return [word for words in seen for word in words if not word.startswith("-Werror")]


def main():
    compiler, build = sys.argv[1], pathlib.Path(sys.argv[2])
    headers = sorted(str(path.relative_to(ROOT)) for folder in ("service", "api", "storage", "tests") for path in (ROOT / folder).rglob("*.h"))
    options = flags(build)

    def compile_alone(header):
        # Twice: a header without #pragma once would define everything again.
        text = f'#include "{header}"\n#include "{header}"\n'
        done = subprocess.run([compiler, *options, "-fsyntax-only", "-Werror", f"-I{ROOT}", "-x", "c++", "-"], input=text, capture_output=True,
                              text=True, cwd=ROOT)
        return header, done.stderr if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [(header, errors) for header, errors in pool.map(compile_alone, headers) if errors]
    for header, errors in bad:
        print(f"{header} does not compile alone:\n{errors[:1500]}")
    print(f"{len(headers)} headers, {len(bad)} do not compile alone")
    return 1 if bad or len(headers) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
