"""Every Python block of the README, in order, as one notebook; and the one of the project's README."""

import os
import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
#: In a checkout the project's README is above; check_package.sh names it, since it tests a copy of the package.
MAIN = pathlib.Path(os.environ.get("MESHD_README") or README.parents[3] / "README.md")


def run_blocks(server, blocks):
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block.replace("http://127.0.0.1:8080", server.url), f"README block {number}", "exec"), names)
    names["m"].close()


def test_readme(server, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 10
    run_blocks(server, blocks)
    said = capsys.readouterr().out
    assert "[[ 5. 14.]\n [14. 50.]]" in said and "loss 0." in said and "^" in said


@pytest.mark.skipif(not MAIN.exists(), reason="the package is tested without its tree")
def test_the_first_example_of_the_project(server, capsys):
    blocks = [each for each in re.findall(r"```\n(.*?)```", MAIN.read_text(), re.S) if "import meshd" in each]
    assert len(blocks) == 1 and len(blocks[0].strip().splitlines()) <= 4
    run_blocks(server, blocks)
    assert capsys.readouterr().out == "[[ 5. 14.]\n [14. 50.]]\n"
