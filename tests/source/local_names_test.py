"""Files of a library folder are compiled in batches, in one namespace: a function, type or constant of a file's anonymous namespace must not
have the name of one that a header of the folder declares, because other files of the batch would find the local one first. Nor may two files have
local functions of one name that take equally many arguments: in a batch they overload each other, and a call may find the other file's."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

FUNCTION = re.compile(r"^(?:template <[^\n]*>\n)?(?:\[\[[^\]]*\]\] )?(?:static |constexpr |inline )*[A-Za-z_][\w:<>,*& ]*? [*&]?([a-z_]\w*)\(", re.M)
OTHERS = re.compile(r"^(?:struct|class|enum class) (\w+)\b(?!;)|^(?:inline )?constexpr [\w:<>, ]+? (k[A-Z]\w*)\b", re.M)
ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
KEYWORDS = {"if", "for", "while", "switch", "return", "operator", "static_assert"}


def names_of(text):
    return FUNCTION.findall(text) + [type_ or constant for type_, constant in OTHERS.findall(text)]


def argument_counts(text, at):
    """How many arguments the function takes whose parameter list begins at text[at]: each number from without to with its defaults."""
    depth, angles, commas, defaults, is_empty = 0, 0, 0, 0, True
    for i in range(at, len(text)):
        c = text[i]
        if c in ")]}":
            depth -= 1
            if depth == 0:
                most = 0 if is_empty else commas + 1
                return range(most - defaults, most + 1)
        is_empty = is_empty and (depth == 0 or c.isspace())
        if c in "([{":
            depth += 1
        elif c in "<>" and text[i - 1] not in "-=":
            angles += 1 if c == "<" else -1
        elif depth == 1 and angles == 0:
            commas += c == ","
            defaults += c == "="
    return range(0)


def files_of(library, pattern):
    """Those of the library's folder and of its subfolders that are no library of their own (cmake/meshd_folder.cmake)."""
    subfolders = [path for path in library.iterdir() if path.is_dir() and not (path / "CMakeLists.txt").exists()]
    return sorted(file for folder in [library, *subfolders] for file in folder.glob(pattern))


def main():
    wrong, looked = [], 0
    for top in ("service", "storage", "api"):
        for folder in sorted(path.parent for path in (ROOT / top).rglob("CMakeLists.txt")):
            if folder.name == "kernels":
                continue  # its files are compiled by themselves
            declared = collections.defaultdict(set)
            for header in files_of(folder, "*.h"):
                for name in names_of(header.read_text()):
                    declared[name].add(header.name)
            taken = collections.defaultdict(set)
            for source in files_of(folder, "*.cpp"):
                text = source.read_text()
                for inside in ANONYMOUS.findall(text):
                    for found in FUNCTION.finditer(inside):
                        for count in argument_counts(inside, found.end() - 1):
                            taken[found.group(1), count].add(source.relative_to(ROOT).as_posix())
                    for name in names_of(inside):
                        looked += 1
                        if name in declared and name not in KEYWORDS:
                            wrong.append(f"{source.relative_to(ROOT)}: {name} is also declared in {', '.join(sorted(declared[name]))}")
            for (name, count), sources in sorted(taken.items()):
                if len(sources) > 1:
                    wrong.append(f"{', '.join(sorted(sources))}: each has a local {name} of {count} arguments")
    print("\n".join(wrong))
    print(f"{looked} local names, {len(wrong)} of them in another file of their folder, too")
    return 1 if wrong or looked < 500 else 0


sys.exit(main())
