"""error_table.py error_examples.yaml OUT: the examples of errors as constant tables in C++ (error_examples.h)."""
import pathlib
import sys

import yaml


def literal(text):
    """A C++ string literal of its UTF-8; octal escapes have three digits, so none runs into what follows."""
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in (34, 63, 92) else f"\\{c:03o}" for c in str(text or "").rstrip("\n").encode()) + '"'


def table(rows):
    out = ["namespace meshd::api {\n"]
    for n, row in enumerate(rows):
        places = row.get("errors", [])
        if places:
            lines = ",\n".join(f'  {{{literal(p["pointer"])}, {literal(p["detail"])}, {p.get("line", 0)}, {p.get("column", 0)}, {literal(p.get("excerpt"))}}}' for p in places)
            out.append(f"inline constexpr ExamplePlace kPlaces{n}[] = {{\n{lines}}};")
    out.append("inline constexpr ErrorExample kErrorExamples[] = {")
    for n, row in enumerate(rows):
        unknown = set(row) - {"code", "command", "only_when", "detail", "errors"}
        if unknown:
            raise SystemExit(f"error_table.py: {row.get('code')} has {', '.join(sorted(unknown))}, which nobody reads")
        out.append("  {" + ", ".join(literal(row.get(name)) for name in ("code", "detail", "command", "only_when"))
                   + (f", kPlaces{n}" if row.get("errors") else ", {}") + "},")
    return "\n".join(out) + "\n};\n\n}  // namespace meshd::api\n"


target = pathlib.Path(sys.argv[2])
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(table(yaml.safe_load(pathlib.Path(sys.argv[1]).read_text())))
