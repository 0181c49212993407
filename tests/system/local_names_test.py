"""Files of a library folder are compiled in batches, in one namespace: a function, type or constant of a file's anonymous namespace must not
have the name of one that a header of the folder declares, because other files of the batch would find the local one first."""
import collections
import pathlib
import re
import sys

from server import ROOT

FUNCTION = re.compile(r"^(?:template <[^\n]*>\n)?(?:\[\[[^\]]*\]\] )?(?:static |constexpr |inline )*[A-Za-z_][\w:<>,*& ]*? [*&]?([a-z_]\w*)\(", re.M)
OTHERS = re.compile(r"^(?:struct|class|enum class) (\w+)\b(?!;)|^(?:inline )?constexpr [\w:<>, ]+? (k[A-Z]\w*)\b", re.M)
ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
KEYWORDS = {"if", "for", "while", "switch", "return", "operator", "static_assert"}


def names_of(text):
    return FUNCTION.findall(text) + [type_ or constant for type_, constant in OTHERS.findall(text)]


def main():
    wrong, looked = [], 0
    for top in ("service", "storage", "api"):
        for folder in sorted({path.parent for path in (ROOT / top).rglob("*.cpp")}):
            if folder.name == "kernels":
                continue  # its files are compiled by themselves
            declared = collections.defaultdict(set)
            for header in folder.glob("*.h"):
                for name in names_of(header.read_text()):
                    declared[name].add(header.name)
            for source in folder.glob("*.cpp"):
                text = source.read_text()
                for inside in ANONYMOUS.findall(text):
                    for name in names_of(inside):
                        looked += 1
                        if name in declared and name not in KEYWORDS:
                            wrong.append(f"{source.relative_to(ROOT)}: {name} is also declared in {', '.join(sorted(declared[name]))}")
    print("\n".join(wrong))
    print(f"{looked} local names, {len(wrong)} of them declared in a header of their folder, too")
    return 1 if wrong or looked < 500 else 0


sys.exit(main())
