"""An error code is a word at the throw: each such word has a row in the table of error codes.

    ./error_words_test.py
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

FOLDERS = ("service", "storage", "api")
# Who takes a code, and as which argument: their literals are looked up. A function with a parameter of this type that is not here fails.
FIRST = ("ErrorCode", "Error", "fail", "throw_if_any")
SECOND = ("fail_at", "reject", "read_json", "read_body")
USE = re.compile(r"\b(?:(?:%s)\b(?:\s+\w+)?\s*\(|(?:%s)(?:<[^()]*>)?\([^\"();,]*,)\s*\"([a-z_]+)\"\s*[,)]" % ("|".join(FIRST), "|".join(SECOND)))
TAKER = re.compile(r"(\w+)\([^();]*\b(?:core::)?ErrorCode \w+")


def table(text):
    return set(re.findall(r'^    \{"([a-z_]+)", ErrorKind', text, re.M))


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def wrong(known, sources):
    problems = []
    for path, text in sources:
        for use in USE.finditer(text):
            if use[1] not in known:
                problems.append(f"{path}:{text.count(chr(10), 0, use.start(1)) + 1}: no row has the code '{use[1]}'")
        problems += [f"{path}: '{name}' takes an error code and is not looked at; name it in FIRST or SECOND"
                     for name in TAKER.findall(text) if name not in (*FIRST, *SECOND, "operator", "row_of")]
    return problems


def main():
    known = table((ROOT / "service/core/error_codes.h").read_text())
    sources = list(files())
    count = sum(len(USE.findall(text)) for _, text in sources)
    assert len(known) > 50 and count > 500, (len(known), count)
    planted = wrong(known, [("a.cpp", 'throw core::Error("no_such", "x"); reject(view, "nor_this", "y");'),
                            ("b.cpp", "void refuse(core::ErrorCode code);")])
    assert len(planted) == 3, planted
    problems = wrong(known, sources)
    assert not problems, "\n".join(problems)
    print(f"{count} throws, {len(known)} codes")


if __name__ == "__main__":
    main()
