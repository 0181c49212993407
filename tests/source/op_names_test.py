"""No stage knows an op by its name: outside of service/ops, an op's full name stands only where an op is written, as an argument of one of
the functions below or in a table of what functions write (`.writes = `, `.writes_of_bits = `). What a stage must know of an op is a fact of its row (OpDef in service/ops/op_def.h)."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Functions that make an op of a name, and the argument that is the name.
WRITERS = {"add": (0, 1), "append": (0,), "one": (0, 1), "ops": (0,), "reduce": (0,), "cumulate": (0,), "elementwise": (1,), "logical_row": (1,), "rounding_row": (1,), "binary": (0,), "op": (0,), "create": (0,), "create_one": (0,), "define": (1,), "reducer": (0,), "new_op": (0,), "as": (0,), "make_op": (0,), "set_op": (1, 2), "find_op": (0,)}
NAME = re.compile(r'"((?:stablehlo|chlo|sdy|func)\.\w+)"')
ROW = re.compile(r'(?:\.name = |\w<)"((?:stablehlo|chlo|sdy|func)\.\w+)"')


def argument_of(text, at):
    """The function whose argument the text at `at` is, and which argument; (None, 0) when there is none."""
    depth, count = 0, 0
    for i in range(at - 1, -1, -1):
        if text[i] in ")]}":
            depth += 1
        elif text[i] in "([{":
            if depth == 0:
                name = re.search(r"(\w+)$", text[:i]) if text[i] == "(" else None
                return (name[1], count) if name else (None, 0)
            depth -= 1
        elif text[i] == "," and depth == 0:
            count += 1
        elif text[i] == ";" and depth == 0:
            break
    return None, 0


def wrong(names, path, text):
    for use in NAME.finditer(text):
        before = text[: use.start()]
        if use[1] not in names or before.endswith("DictAttr{"):
            continue  # an attribute, or what is no op: func.func, sdy.mesh
        line = before[before.rfind("\n") + 1 :]
        function, number = argument_of(text, use.start())
        compared = re.search(r"[=!]=\s*$", before) or re.match(r"\s*[=!]=", text[use.end() :])
        if "//" in line or re.search(r"\.(name|writes|writes_of_bits) = $", before) or (function in WRITERS and number in WRITERS[function] and not compared):
            continue
        yield f"{path}:{text.count(chr(10), 0, use.start()) + 1}: {use[0]} is not the name of an op that is written"


def main():
    names = set()
    for path in (ROOT / "service/ops").rglob("*.cpp"):
        names.update(ROW.findall(path.read_text()))
    assert len(names) > 150 and {"stablehlo.add", "sdy.all_gather", "chlo.erf", "func.call"} <= names, len(names)
    planted = 'if (op.name == "stablehlo.add") x(); constexpr auto k = "sdy.reshard"; w.one("stablehlo.add", {}); f(a == "chlo.erf"); set_op(o, "func.call");'
    assert len(list(wrong(names, "a.cpp", planted))) == 3, list(wrong(names, "a.cpp", planted))
    problems = []
    for top in ("service", "api", "storage"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp") and ROOT / "service/ops" not in path.parents:
                problems += wrong(names, path.relative_to(ROOT), path.read_text())
    assert not problems, "\n".join(problems)
    print(f"{len(names)} ops, none of them named outside of service/ops but where it is written")


if __name__ == "__main__":
    main()
