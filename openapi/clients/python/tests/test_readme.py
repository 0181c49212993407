"""Every Python block of the README, in order, as one notebook."""

import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def test_readme(server, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 10
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block.replace("http://127.0.0.1:8080", server.url), f"README block {number}", "exec"), names)
    names["m"].close()
    said = capsys.readouterr().out
    assert "[[ 5. 14.]\n [14. 50.]]" in said and "loss 0." in said and "^" in said
