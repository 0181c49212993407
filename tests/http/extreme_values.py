"""The extreme values of tests/http/extremes_test.py, and where a contract lets them stand.

A value is JSON text, because Python's own encoder does not write 1e400; a leaf is a place in a request where one is put."""

import json
import urllib.parse

WIDE = 100_000
DEEP = 10_000
LONG = 1 << 20

# By name, so that a failure can be told in a line.
VALUES = {
    "0": "0", "-1": "-1", "1": "1", "2^31": str(2**31), "2^32": str(2**32), "2^63": str(2**63), "-2^63": str(-(2**63)),
    "1e400": "1e400", "1e-400": "1e-400", "empty text": '""', "NUL": '"\\u0000"', "long text": json.dumps("a" * LONG),
    "deep list": "[" * DEEP + "]" * DEEP, "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "wide list": "[" + ",".join(["1"] * WIDE) + "]", "wide list of lists": "[" + ",".join(["[]"] * WIDE) + "]",
    "wide list of texts": "[" + ",".join(f'"a{i}"' for i in range(WIDE)) + "]",
    "wide object": "{" + ",".join(f'"a{i}":1' for i in range(WIDE)) + "}",
    "null": "null", "true": "true", "text": '"x"', "empty list": "[]", "empty object": "{}", "list of 2^63": f"[{2**63 - 1}]",
    "list of -1": "[-1]", "list of 0": "[0]", "three of 2^31": f"[{2**31},{2**31},{2**31}]",
}

# The same where there is text only: in paths, queries and headers.
TEXTS = {
    "0": "0", "-1": "-1", "1": "1", "2^31": str(2**31), "2^32": str(2**32), "2^63": str(2**63), "-2^63": str(-(2**63)), "1e400": "1e400",
    "1e-400": "1e-400", "empty": "", "NUL": "\0", "long": "a" * LONG, "8 KiB": "a" * 8000, "true": "true", "commas": "," * 4000,
    "deep": "[" * 4000, "three of 2^31": ",".join([str(2**31)] * 3), "2^62 twice": f"{2**62},{2**62}", "range": f"bytes=0-{2**63}",
    "ranges": "bytes=" + ",".join(f"{i}-{i}" for i in range(1000)), "slice": f"0:{2**63 - 1}", "dots": "../" * 1000,
}


class Raw:
    """Stands in a body for the text of a value."""

    def __init__(self, text):
        self.text = text


def encode(body):
    """JSON of a body that may have raw values in it."""
    raw = []

    def keep(value):
        raw.append(value.text)
        return f"\ue000{len(raw) - 1}\ue000"

    text = json.dumps(body, default=keep, ensure_ascii=False)
    for number, value in enumerate(raw):
        text = text.replace(f'"\ue000{number}\ue000"', value)
    return text.encode()


def placed(base, path, value):
    """A copy of the base with the value at the path; what is missing on the way is made."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(base) if isinstance(base, list) else []
        while len(items) <= step:
            items.append(None)
        items[step] = placed(items[step], rest, value)
        return items
    fields = dict(base) if isinstance(base, dict) else {}
    fields[step] = placed(fields.get(step), rest, value)
    return fields


def leaves(contract, schema, example=None, path=(), seen=()):
    """Every place of a schema: fields, entries of lists, values of open objects, and the containers themselves."""
    yield path
    name = schema.get("$ref")
    if name in seen:
        return
    seen = seen + ((name,) if name else ())
    schema = contract.resolve(schema)
    for field, inner in schema.get("properties", {}).items():
        yield from leaves(contract, inner, None, (*path, field), seen)
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        yield from leaves(contract, rest, None, (*path, "mesh"), seen)
    elif rest and "properties" not in schema:
        yield (*path, "a")
    if schema.get("type") == "array":
        yield from leaves(contract, schema["items"], None, (*path, 0), seen)


def in_path(text):
    return urllib.parse.quote(text, safe="")
