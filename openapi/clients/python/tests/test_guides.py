"""The Python blocks of the project's guides, each guide as one notebook.

What a block prints is in the `text` block below it, where `...` stands for anything. from-jax.md is the story of a
person with JAX. MESHD_WRITE_GUIDES=1 writes what was printed into the guides.
"""

import os
import pathlib
import re

import pytest

#: In a checkout the guides are above; check_package.sh names them, since it tests a copy of the package.
GUIDES = pathlib.Path(os.environ.get("MESHD_DOCS") or pathlib.Path(__file__).resolve().parents[4] / "docs")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)


def fits(expected, got):
    pattern = "".join(".*?" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", expected))
    return re.fullmatch(pattern, got, re.S) is not None


@pytest.mark.skipif(not GUIDES.is_dir(), reason="the package is tested without its tree")
@pytest.mark.parametrize("name", ["from-jax", "what-can-be-sent"])
def test_guide(server, capsys, name):
    if name == "what-can-be-sent":
        pytest.importorskip("flatbuffers")
    path = GUIDES / f"{name}.md"
    text = path.read_text()
    names, pieces, last = {}, [], 0
    for number, found in enumerate(BLOCK.finditer(text)):
        code = found[1].replace("http://127.0.0.1:8080", server.url)
        exec(compile(code, f"{name}.md block {number}", "exec"), names)
        said = capsys.readouterr().out
        if os.environ.get("MESHD_WRITE_GUIDES") and found[2] is not None:
            pieces += [text[last : found.start(2)], said]
            last = found.end(2)
        else:
            assert fits(found[2] or "", said), f"{name}.md block {number} printed {said!r}, the guide says {found[2]!r}"
    assert number >= 2
    if pieces:
        path.write_text("".join(pieces) + text[last:])
