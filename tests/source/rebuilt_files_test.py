"""How many files a change to a header compiles again, when each file is compiled by itself (without the batches of MESHD_UNITY_BUILD): the
.cpp files of service, storage and api that include it, directly or not, as `g++ -MM` would list them.

    ./rebuilt_files_test.py                       holds the limits below
    ./rebuilt_files_test.py service/ops/op_def.h  prints the files
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

LIMITS = {  # header, and the number of files that stays above what it rebuilds
    "service/core/error_codes.h": 20,
    "service/kernels/tile/tile_program.h": 60,
    "service/ops/kernel_interface.h": 60,
}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def rebuilt(header, includes):
    """The .cpp files that `header` is part of."""
    users = {path: [user for user in includes if path in includes[user]] for path in includes}
    found, waiting = set(), [header]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += users[path]
    return sorted(path for path in found if path.endswith(".cpp"))


def main():
    includes = {}
    for top in ("service", "storage", "api"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in (".h", ".cpp"):
                includes[path.relative_to(ROOT).as_posix()] = set(INCLUDE.findall(path.read_text()))
    if len(sys.argv) > 1:
        for header in sys.argv[1:]:
            files = rebuilt(header, includes)
            print(*files, f"{len(files)} files for {header}", sep="\n")
        return
    planted = {"a.h": set(), "b.h": {"a.h"}, "c.cpp": {"b.h"}, "d.cpp": set()}
    assert rebuilt("a.h", planted) == ["c.cpp"], rebuilt("a.h", planted)
    for header, limit in LIMITS.items():
        files = rebuilt(header, includes)
        assert files, f"nothing includes {header}"
        assert len(files) < limit, f"{header} rebuilds {len(files)} files, fewer than {limit} are wanted"
        print(f"{len(files)} files for {header}")


if __name__ == "__main__":
    main()
