"""What a contract takes away from clients of an older one.

  breaks.py                    compares openapi.yaml with the last contract of released/; exit 1 where something breaks that accepted.txt does not name
  breaks.py OLD NEW            compares two documents (YAML or JSON)
  breaks.py --release VERSION  keeps openapi.yaml, without its prose, as released/VERSION.json; accepted.txt begins anew then

A break is what a client of the old document may meet: a request that was right and is refused, or an answer that lacks what was promised. Each has a
name (`PLACE: WHAT`), which is the line for accepted.txt where it is meant."""
import json
import pathlib
import re
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
RELEASED = HERE / "released"
METHODS = ("get", "put", "post", "delete", "patch")
ROLES = ("reader", "user", "admin")
PROSE = ("description", "summary", "example", "examples")
# Keywords that bound a value, and which of two bounds takes fewer values.
UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
LOWER = ("minimum", "minLength", "minItems", "minProperties")
REQUEST, ANSWER = "request", "answer"


class Comparison:
    """Of one pair of documents; `found` has the breaks."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.found = []
        self.seen = set()  # pairs of named schemas in one direction: they refer to themselves

    def note(self, place, what):
        self.found.append(f"{place}: {what}")

    def run(self):
        paths = {re.sub(r"\{[^}]*\}", "{}", path): path for path in self.new["paths"]}
        for path, item in self.old["paths"].items():
            for method in METHODS:
                if method not in item:
                    continue
                name = f"{method.upper()} {path}"
                there = self.new["paths"].get(paths.get(re.sub(r"\{[^}]*\}", "{}", path)), {})
                if method in there:
                    self.operation(name, (item, item[method]), (there, there[method]))
                else:
                    self.note(name, "is gone")
        return self.found

    def operation(self, name, old, new):
        (old_item, old), (new_item, new) = old, new
        if old.get("operationId") != new.get("operationId"):
            self.note(name, f"operationId was {old.get('operationId')}")
        if old.get("security") == [] and new.get("security") != []:
            self.note(name, "asks for a token")
        old_role, new_role = (ROLES.index(one.get("x-role", ROLES[0])) for one in (old, new))
        if new_role > old_role:
            self.note(name, f"needs the role {ROLES[new_role]}")
        self.parameters(name, self.parameters_of(self.old, old_item, old), self.parameters_of(self.new, new_item, new))
        self.request_body(name, old.get("requestBody"), new.get("requestBody"))
        for status, response in old["responses"].items():
            if status[0] in "123":
                self.answer(f"{name} {status}", response, new["responses"].get(status))

    def parameters_of(self, document, item, operation):
        """{(in, name): parameter}; a path's parameters go by their place."""
        out = {}
        for parameter in item.get("parameters", []) + operation.get("parameters", []):
            parameter = resolved(document, parameter)
            if parameter["in"] == "path":
                key = ("path", sum(1 for where, _ in out if where == "path"))
            else:
                key = (parameter["in"], parameter["name"].lower() if parameter["in"] == "header" else parameter["name"])
            out[key] = parameter
        return out

    def parameters(self, name, old, new):
        for key, parameter in old.items():
            place = f"{name} {key[0]} {parameter['name']}"
            if key not in new:
                self.note(place, "is gone")
                continue
            if new[key].get("required") and not parameter.get("required"):
                self.note(place, "is required")
            for way in ("style", "explode"):
                if parameter.get(way) != new[key].get(way):
                    self.note(place, f"{way} is another")
            self.schema(place, parameter.get("schema", {}), new[key].get("schema", {}), REQUEST)
        for key, parameter in new.items():
            if key not in old and parameter.get("required"):
                self.note(f"{name} {key[0]} {parameter['name']}", "is new and required")

    def request_body(self, name, old, new):
        old, new = resolved(self.old, old or {}), resolved(self.new, new or {})
        if new.get("required") and not old.get("required"):
            self.note(name, "a body is required")
        self.content(f"{name} body", old, new, REQUEST)

    def answer(self, place, old, new):
        if new is None:
            self.note(place, "is gone")
            return
        old, new = resolved(self.old, old), resolved(self.new, new)
        headers = {header.lower() for header in new.get("headers", {})}
        for header in old.get("headers", {}):
            if header.lower() not in headers:
                self.note(f"{place} header {header}", "is gone")
        self.content(place, old, new, ANSWER)

    def content(self, place, old, new, direction):
        for kind, media in old.get("content", {}).items():
            if kind not in new.get("content", {}):
                self.note(f"{place} {kind}", "is gone")
            else:
                self.schema(f"{place} {kind}", media.get("schema", {}), new["content"][kind].get("schema", {}), direction)

    def schema(self, place, old, new, direction):
        names = old.get("$ref"), new.get("$ref")
        if all(names):
            if (names, direction) in self.seen:
                return
            self.seen.add((names, direction))
            place = f"{direction} {names[0].rsplit('/', 1)[1]}"  # once for all operations that have it
        old, new = resolved(self.old, old), resolved(self.new, new)
        for word in ("oneOf", "anyOf", "allOf", "not"):
            if old.get(word) != new.get(word):
                self.note(place, f"{word} is another: breaks.py does not look into it")
        # Whoever has to understand the other's values: the server those of requests, the client those of answers.
        sent, understood = (old, new) if direction == REQUEST else (new, old)
        if "type" in understood and not self.is_kind_of(sent.get("type"), understood["type"]):
            self.note(place, f"type was {old.get('type')}, is {new.get('type')}")
        if sent.get("nullable") and not understood.get("nullable") and "type" in understood:
            self.note(place, "may not be null" if direction == REQUEST else "may be null")
        if "enum" in understood:
            for value in sent.get("enum") or ["any value"]:
                if value not in understood["enum"]:
                    self.note(place, f"{value} is not taken" if direction == REQUEST else f"{value} is new")
        if old.get("format") != new.get("format") and understood.get("format"):
            self.note(place, f"format was {old.get('format')}, is {new.get('format')}")
        if direction == REQUEST:
            self.bounds(place, old, new)
        self.properties(place, old, new, direction)
        if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
            self.schema(f"{place}[]", old["items"], new["items"], direction)

    @staticmethod
    def is_kind_of(sent, understood):
        return sent == understood or (sent, understood) == ("integer", "number")

    def bounds(self, place, old, new):
        for words, is_tighter in ((UPPER, lambda a, b: b < a), (LOWER, lambda a, b: b > a)):
            for word in words:
                if word in new and (word not in old and new[word] != 0 or word in old and is_tighter(old[word], new[word])):
                    self.note(place, f"{word} was {old.get(word)}, is {new[word]}")
        for word in ("pattern", "multipleOf", "uniqueItems"):
            if new.get(word) and old.get(word) != new.get(word):
                self.note(place, f"{word} was {old.get(word)}, is {new[word]}")

    def properties(self, place, old, new, direction):
        old_ones, new_ones = old.get("properties", {}), new.get("properties", {})
        for name, schema in old_ones.items():
            if name in new_ones:
                self.schema(f"{place}.{name}", schema, new_ones[name], direction)
            elif direction == ANSWER or new.get("additionalProperties") is False:
                self.note(f"{place}.{name}", "is gone")
        old_required, new_required = set(old.get("required", [])), set(new.get("required", []))
        for name in sorted(new_required - old_required) if direction == REQUEST else sorted(old_required - new_required):
            if direction == REQUEST or name in new_ones:
                self.note(f"{place}.{name}", "is required" if direction == REQUEST else "may be absent")
        more, now = old.get("additionalProperties"), new.get("additionalProperties")
        if direction == REQUEST and now is False and more is not False and old.get("type") == "object":
            self.note(place, "other properties are refused")
        if isinstance(more, dict) and isinstance(now, dict):
            self.schema(f"{place}.*", more, now, direction)


def resolved(document, node):
    while "$ref" in node:
        target = document
        for word in node["$ref"].removeprefix("#/").split("/"):
            target = target[word.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def breaks(old, new):
    """What `new` takes away from clients of `old`, each once."""
    return list(dict.fromkeys(Comparison(old, new).run()))


def without_prose(node):
    """The document without what no client depends on. Properties may have the names of prose."""
    if isinstance(node, list):
        return [without_prose(one) for one in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            out[key] = {name: without_prose(schema) for name, schema in value.items()}
        elif key not in PROSE:
            out[key] = without_prose(value)
    return out


def read(path):
    return yaml.load(pathlib.Path(path).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def last_release():
    """The file of the newest version in released/."""
    def version(path):
        numbers, _, candidate = path.stem.partition("-")
        return [int(number) for number in numbers.split(".")], not candidate, candidate
    return max(RELEASED.glob("*.json"), key=version)


def accepted():
    """The breaks that are meant: {line: reason}, a break a line with its reason in the comment lines above."""
    out, reason = {}, []
    for line in (RELEASED / "accepted.txt").read_text().splitlines():
        if line.startswith("#"):
            reason.append(line.lstrip("# "))
        elif line:
            out[line] = " ".join(reason)
        else:
            reason = []
    return out


def in_lines(node, depth):
    """JSON with a line for each entry down to this depth, so that two releases can be compared line by line."""
    if depth == 0 or not isinstance(node, dict):
        return json.dumps(node, ensure_ascii=False)
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {in_lines(value, depth - 1)}" for key, value in node.items()) + "\n}"


def main():
    if sys.argv[1:2] == ["--release"]:
        (RELEASED / f"{sys.argv[2]}.json").write_text(in_lines(without_prose(read(HERE / "openapi.yaml")), 3) + "\n")
        return 0
    if sys.argv[1:]:
        found, meant = breaks(read(sys.argv[1]), read(sys.argv[2])), {}
    else:
        found, meant = breaks(read(last_release()), read(HERE / "openapi.yaml")), accepted()
        print(f"held to {last_release().name}")
    new = [line for line in found if line not in meant]
    for line in new:
        print(line)
    stale = [line for line in meant if line not in found]
    for line in stale:
        print(f"accepted.txt names what is no break: {line}")
    return 1 if new or stale else 0


if __name__ == "__main__":
    sys.exit(main())
