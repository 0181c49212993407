"""Files of a library folder are compiled in batches, in one namespace: a function, type or constant of a file's anonymous namespace must not
have the name of one that a header of the folder declares, because other files of the batch would find the local one first."""
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
            for source in files_of(folder, "*.cpp"):
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
