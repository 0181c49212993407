"""JSON against the schemas of the contract: the part of OpenAPI 3.0 that openapi.yaml uses, and nothing beyond it."""

import re

KNOWN = {"$ref", "type", "format", "description", "example", "nullable", "enum", "default", "minimum", "maximum", "minLength",
         "maxLength", "minItems", "maxItems", "minProperties", "pattern", "items", "properties", "required",
         "additionalProperties"}

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}

FORMATS = {
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "byte": re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
}


class Contract:
    def __init__(self, document):
        self.document = document

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for key in node["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            node = target
        return node

    def operations(self):
        """(method in capitals, path, operation) of every operation."""
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                yield method.upper(), path, operation

    def operation(self, operation_id):
        return next(o for _, _, o in self.operations() if o["operationId"] == operation_id)

    def mistakes(self, value, schema, place=""):
        """What is wrong with the value, each with its JSON Pointer; empty when it is right."""
        schema = self.resolve(schema)
        unknown = set(schema) - KNOWN
        if unknown:
            raise ValueError(f"{place}: the checker does not know {sorted(unknown)}")
        if value is None:
            return [] if schema.get("nullable") or "type" not in schema else [f"{place}: null"]
        kind = schema.get("type")
        if kind is None:
            return []
        if not TYPES[kind](value):
            return [f"{place}: {value!r} is no {kind}"]
        out = []

        def hold(rule, kept):
            if rule in schema and not kept(schema[rule]):
                out.append(f"{place}: {value!r} breaks {rule} {schema[rule]!r}")

        hold("enum", lambda words: value in words)
        if kind in ("integer", "number"):
            hold("minimum", lambda low: value >= low)
            hold("maximum", lambda high: value <= high)
        if kind == "string":
            hold("minLength", lambda low: len(value) >= low)
            hold("maxLength", lambda high: len(value) <= high)
            hold("pattern", lambda pattern: re.search(pattern, value) is not None)
            hold("format", lambda name: name not in FORMATS or FORMATS[name].fullmatch(value) is not None)
        if kind == "array":
            hold("minItems", lambda low: len(value) >= low)
            hold("maxItems", lambda high: len(value) <= high)
            for i, item in enumerate(value):
                out += self.mistakes(item, schema["items"], f"{place}/{i}")
        if kind == "object":
            out += self.object_mistakes(value, schema, place)
        return out

    def object_mistakes(self, value, schema, place):
        properties = schema.get("properties", {})
        rest = schema["additionalProperties"]
        out = [f"{place}: {name} is missing" for name in schema.get("required", []) if name not in value]
        if len(value) < schema.get("minProperties", 0):
            out.append(f"{place}: fewer than {schema['minProperties']} fields")
        for name, item in value.items():
            if name in properties:
                out += self.mistakes(item, properties[name], f"{place}/{name}")
            elif isinstance(rest, dict):
                out += self.mistakes(item, rest, f"{place}/{name}")
            elif not rest:
                out.append(f"{place}: {name} is not in the contract")
        return out
