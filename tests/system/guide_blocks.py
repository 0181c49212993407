"""The blocks of a guide in Markdown: what one types, and what is answered. `...` of an answer stands for anything."""
import re


FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.M | re.S)
PEAK = re.compile(r"[\d,]+(?= bytes at the peak)")  # with the scratch of kernels, which differs between instruction sets
IDS = re.compile(r"\b(arr|mesh|ses|job|prog|upl)_[0-9a-f]{8}[0-9a-f-]{20,64}|\breq-[0-9a-f]+-[0-9a-f]+")


class Step:
    """A command with its lines of continuation, and the answer below it."""

    def __init__(self, command):
        self.command, self.said = command, []


def steps_of(text):
    """The steps of a console block."""
    out = []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            out.append(Step(line[2:]))
        elif line.startswith("> ") and out and not out[-1].said:
            out[-1].command += "\n" + line[2:]
        elif out:
            out[-1].said.append(line)
        else:
            raise ValueError(f"a console block begins with '$ ', not with {line!r}")
    return out


def console_of(steps):
    return "".join("$ " + step.command.replace("\n", "\n> ") + "\n" + "".join(line + "\n" for line in step.said) for step in steps)


def fits(expected, got):
    """Whether a text is what is expected, where '...' may be anything of a line, and a line of it alone any lines."""
    expected = [PEAK.sub("...", line) for line in expected]
    parts = ["(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*?") + "\n" for line in expected]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in got)) is not None


def shortened(text):
    return IDS.sub(lambda found: (found[1] + "_" if found[1] else "req-") + "...", text)
