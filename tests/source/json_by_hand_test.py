"""JSON is written from the tables of api/json/schema.h (or by nlohmann for what is no document of ours), never joined by hand: the escaped
quotes of api's C++ stay as few as messages and headers need."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

MOST = 100


def main():
    counts = {path: path.read_text().count('\\"') for path in sorted((ROOT / "api").rglob("*")) if path.suffix in (".h", ".cpp")}
    total = sum(counts.values())
    print(f"{total} escaped quotes in {len(counts)} files of api")
    if total >= MOST:
        for path, count in sorted(counts.items(), key=lambda item: -item[1])[:8]:
            print(f"  {count} in {path.relative_to(ROOT)}")
        print(f"at most {MOST}: declare a document as a Schema (api/json/schema.h); R\"(...)\" is for text that is no JSON")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
