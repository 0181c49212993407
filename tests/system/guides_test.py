#!/usr/bin/env python3
"""Every shell block of the guides in docs/, typed in order into one shell a guide, against a server: `console` blocks must answer what stands
below their lines, `sh` blocks must succeed. from-curl.md is the story of a person at a terminal.

guides_test.py BINARY           compares
guides_test.py BINARY --write   writes the answers into the guides, ids shortened"""
import os
import re
import subprocess
import sys

from guide_blocks import FENCE, console_of, fits, shortened, steps_of
from server import ROOT, Meshd

MARK = "-- end of step --"


def typed(commands, server):
    """What bash prints for each command (a list of lines) and its exit code."""
    environment = {**os.environ, "PATH": f"{os.path.dirname(server.binary)}:{os.environ['PATH']}", "MESHD_URL": server.url, "HOME": server.folder}
    script = "".join(f"{command}\nprintf '\\n%s %s\\n' '{MARK}' $?\n" for command in commands).replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, timeout=120, cwd=server.folder, env=environment)
    out = []
    for part in re.split(rf"\n{MARK} (?=\d+\n)", done.stdout):
        if out:
            code, _, part = part.partition("\n")
            out[-1][1] = int(code)
        out.append([part.rstrip("\n").split("\n") if part.strip("\n") else [], None])
    return out[:-1], done.stderr


def check(path, server, is_writing):
    """What is wrong with a guide."""
    text = path.read_text()
    blocks = [(found, found[1], found[2]) for found in FENCE.finditer(text) if found[1] in ("console", "sh")]
    wrong = [f"a block with curl in it is neither console nor sh: {found[2][:80]!r}" for found in FENCE.finditer(text)
             if found[1] not in ("console", "sh") and re.search(r"^(\$ )?curl ", found[2], re.M)]
    steps = [steps_of(body) if kind == "console" else None for _, kind, body in blocks]
    commands = [command for of_block, (_, _, body) in zip(steps, blocks) for command in ([step.command for step in of_block] if of_block else [body])]
    answers, stderr = typed(commands, server)
    if len(answers) != len(commands):
        return [f"the shell ended after {len(answers)} of {len(commands)} steps: {stderr[-500:]}"]
    at, pieces, last = 0, [], 0
    for (found, _, body), of_block in zip(blocks, steps):
        if of_block is None:
            said, code = answers[at]
            at += 1
            if code != 0 or not said:
                wrong.append(f"{body[:200]}\n  ended with {code}: {said[-3:]}")
            continue
        for step in of_block:
            said, code = answers[at]
            at += 1
            said = shortened("\n".join(said)).replace(f"127.0.0.1:{server.port}", "127.0.0.1:8080").split("\n") if said else []
            if is_writing and code == 0:
                step.said = said
            elif code != 0 or not fits(step.said, said):
                wrong.append(f"$ {step.command}\n  expected {step.said}\n  got      {said} (exit {code})")
        pieces += [text[last:found.start(2)], console_of(of_block)]
        last = found.end(2)
    if is_writing:
        path.write_text("".join(pieces) + text[last:])
    print(f"{path.name}: {len(commands)} steps, {len(wrong)} wrong")
    return wrong


def main():
    wrong = []
    with Meshd(os.path.abspath(sys.argv[1]), "--devices", "8") as server:
        for path in sorted((ROOT / "docs").glob("*.md")):
            if path.name != "README.md":
                wrong += [f"{path.name}: {each}" for each in check(path, server, "--write" in sys.argv)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
