#!/usr/bin/env python3
"""Writes src/meshd/errors_by_code.py, a class for each error code, from a running server's /docs/errors.

make_errors.py URL > src/meshd/errors_by_code.py; tests/test_errors.py holds the file to the server.
"""

import builtins
import json
import sys
import textwrap
import urllib.request

HEAD = '''"""A class for each error code of the server, written by tools/make_errors.py from its /docs/errors."""

from .errors import Error
'''


def class_name(code: str) -> str:
    name = "".join(word.capitalize() for word in code.split("_"))
    return "Server" + name if hasattr(builtins, name) else name


def main() -> None:
    request = urllib.request.Request(sys.argv[1].rstrip("/") + "/docs/errors", headers={"Accept": "application/json"})
    with urllib.request.urlopen(request) as answer:
        rows = json.load(answer)["items"]
    out = [HEAD]
    for row in rows:
        text = f"{row['title']} ({row['status']}). {row['hint']}".replace("\\", "\\\\").replace('"""', "'''")
        lines = textwrap.wrap(text, 110)
        close = "\n    " if len(lines) > 1 or lines[-1].endswith('"') else ""
        body = "\n    ".join(lines)
        out.append(
            f'\n\nclass {class_name(row["code"])}(Error):\n    """{body}{close}"""\n\n    code = "{row["code"]}"\n'
            f"{hint_lines(row['hint'])}"
        )
    out.append("\n\n__all__ = [\n" + "".join(f'    "{class_name(row["code"])}",\n' for row in rows) + "]\n")
    sys.stdout.write("".join(out))


def hint_lines(text: str) -> str:
    """The assignment of the hint as ruff formats it: one literal where it fits the line, else several."""
    whole = f"    hint = {literal(text)}\n"
    if len(whole) <= 121:
        return whole
    parts, line = [], ""
    for word in text.split(" "):
        if line and len(line) + len(word) > 100:
            parts.append(line)
            line = ""
        line += word + " "
    parts.append(line[:-1])
    return "    hint = (\n" + "".join(f"        {literal(part)}\n" for part in parts) + "    )\n"


def literal(text: str) -> str:
    """In double quotes, but where only single ones need no escapes."""
    if '"' in text and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    main()
