"""The contract breaks nothing of the last release: breaks_test.py. First openapi/breaks.py is shown a break of each kind, and changes that break nothing."""
import copy
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "openapi"))
import breaks  # noqa: E402

OLD = breaks.yaml.safe_load("""
paths:
  /things/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string, maxLength: 40}}]
    get:
      operationId: getThing
      x-role: reader
      parameters:
        - {$ref: "#/components/parameters/Depth"}
        - {name: order, in: query, schema: {type: string, enum: [up, down]}}
      responses:
        "200":
          headers: {ETag: {schema: {type: string}}}
          content: {application/json: {schema: {$ref: "#/components/schemas/Thing"}}, text/plain: {schema: {type: string}}}
        "404": {}
    put:
      operationId: putThing
      security: []
      requestBody:
        content: {application/json: {schema: {$ref: "#/components/schemas/ThingInput"}}}
      responses: {"204": {}}
  /other:
    get: {operationId: other, responses: {"200": {}}}
components:
  parameters:
    Depth: {name: depth, in: query, schema: {type: integer, minimum: 0, maximum: 9}}
  schemas:
    Thing:
      type: object
      required: [name, state]
      properties:
        name: {type: string}
        state: {type: string, enum: [open, done]}
        count: {type: integer}
        next: {$ref: "#/components/schemas/Thing"}
    ThingInput:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: {type: string, nullable: true}
        sizes: {type: array, items: {type: integer, format: int64}}
""")


def changed(change):
    """The breaks of the document that `change` makes of OLD."""
    new = copy.deepcopy(OLD)
    change(new, new["paths"]["/things/{id}"], new["components"]["schemas"]["Thing"], new["components"]["schemas"]["ThingInput"])
    return breaks.breaks(OLD, new)


def at(place, name, value):
    """A change that puts a value at a path of words; None takes away what is there."""
    def change(new, *_):
        node = new
        for word in place:
            node = node[word]
        if value is None:
            del node[name]
        else:
            node[name] = value
    return change


THING, INPUT, PATH = ("components", "schemas", "Thing"), ("components", "schemas", "ThingInput"), ("paths", "/things/{id}")
BREAK = {
    "GET /other: is gone": at(("paths",), "/other", None),
    "PUT /things/{id}: is gone": at(PATH, "put", None),
    "GET /things/{id}: operationId was getThing": at((*PATH, "get"), "operationId", "readThing"),
    "PUT /things/{id}: asks for a token": at((*PATH, "put"), "security", None),
    "GET /things/{id}: needs the role admin": at((*PATH, "get"), "x-role", "admin"),
    "GET /things/{id} query order: is gone": at((*PATH, "get", "parameters"), 1, None),
    "GET /things/{id} query order: is required": at((*PATH, "get", "parameters", 1), "required", True),
    "GET /things/{id} query order: up is not taken": at((*PATH, "get", "parameters", 1, "schema"), "enum", ["down"]),
    "GET /things/{id} query order: explode is another": at((*PATH, "get", "parameters", 1), "explode", False),
    "GET /things/{id} query depth: maximum was 9, is 5": at(("components", "parameters", "Depth", "schema"), "maximum", 5),
    "GET /things/{id} query depth: minimum was 0, is 1": at(("components", "parameters", "Depth", "schema"), "minimum", 1),
    "GET /things/{id} path id: maxLength was 40, is 20": at((*PATH, "parameters", 0, "schema"), "maxLength", 20),
    "GET /things/{id} path id: pattern was None, is x": at((*PATH, "parameters", 0, "schema"), "pattern", "x"),
    "GET /things/{id} 200: is gone": at((*PATH, "get", "responses"), "200", None),
    "GET /things/{id} 200 header ETag: is gone": at((*PATH, "get", "responses", "200", "headers"), "ETag", None),
    "GET /things/{id} 200 text/plain: is gone": at((*PATH, "get", "responses", "200", "content"), "text/plain", None),
    "PUT /things/{id}: a body is required": at((*PATH, "put", "requestBody"), "required", True),
    "PUT /things/{id} body application/json: is gone": at((*PATH, "put", "requestBody"), "content", {"text/plain": {}}),
    "answer Thing.count: is gone": at((*THING, "properties"), "count", None),
    "answer Thing.count: type was integer, is number": at((*THING, "properties", "count"), "type", "number"),
    "answer Thing.count: may be null": at((*THING, "properties", "count"), "nullable", True),
    "answer Thing.state: may be absent": at(THING, "required", ["name"]),
    "answer Thing.state: lost is new": at((*THING, "properties", "state"), "enum", ["open", "done", "lost"]),
    "request ThingInput.sizes: is gone": at((*INPUT, "properties"), "sizes", None),
    "request ThingInput.sizes: is required": at(INPUT, "required", ["name", "sizes"]),
    "request ThingInput.sizes: maxItems was None, is 3": at((*INPUT, "properties", "sizes"), "maxItems", 3),
    "request ThingInput.sizes[]: type was integer, is string": at((*INPUT, "properties", "sizes", "items"), "type", "string"),
    "request ThingInput.sizes[]: format was int64, is int32": at((*INPUT, "properties", "sizes", "items"), "format", "int32"),
    "request ThingInput.name: may not be null": at((*INPUT, "properties", "name"), "nullable", None),
}
HARMLESS = {
    "a path's parameter has another name": lambda new, path, *_: (
        new["paths"].update({"/things/{thing}": new["paths"].pop("/things/{id}")}), path["parameters"][0].update(name="thing")),
    "a new operation": at(("paths",), "/new", {"get": {"operationId": "new", "responses": {"200": {}}}}),
    "a new parameter": lambda new, path, *_: path["get"]["parameters"].append({"name": "more", "in": "query", "schema": {}}),
    "a lower role": at((*PATH, "put"), "x-role", "reader"),
    "a larger bound": at(("components", "parameters", "Depth", "schema"), "maximum", 10),
    "one more value of a parameter": at((*PATH, "get", "parameters", 1, "schema"), "enum", ["up", "down", "none"]),
    "one more field of an answer": at((*THING, "properties"), "more", {"type": "string"}),
    "fewer values of an answer": at((*THING, "properties", "state"), "enum", ["open"]),
    "a field that is always there now": at(THING, "required", ["name", "state", "count"]),
    "one more field of a body": at((*INPUT, "properties"), "more", {"type": "string"}),
    "a field that may be absent now": at(INPUT, "required", None),
    "any number in place of integers": at((*INPUT, "properties", "sizes", "items"), "type", "number"),
    "another refusal": at((*PATH, "get", "responses"), "404", None),
}


class Breaks(unittest.TestCase):
    def test_each_break_is_found_and_named(self):
        for line, change in BREAK.items():
            with self.subTest(line):
                self.assertIn(line, changed(change))

    def test_a_value_that_is_no_longer_taken_in_a_body_is_found(self):
        old = copy.deepcopy(OLD)
        old["components"]["schemas"]["ThingInput"]["properties"]["name"]["enum"] = ["a", "b"]
        new = copy.deepcopy(old)
        new["components"]["schemas"]["ThingInput"]["properties"]["name"]["enum"] = ["b"]
        self.assertEqual(breaks.breaks(old, new), ["request ThingInput.name: a is not taken"])

    def test_what_breaks_nothing_is_not_named(self):
        self.assertEqual(breaks.breaks(OLD, OLD), [])
        for what, change in HARMLESS.items():
            with self.subTest(what):
                self.assertEqual(changed(change), [])

    def test_contract_of_this_tree_breaks_nothing_of_the_last_release(self):
        done = subprocess.run([sys.executable, str(ROOT / "openapi/breaks.py")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"mend it, or name it in openapi/released/accepted.txt with the reason:\n{done.stdout}{done.stderr}")
        self.assertIn("held to", done.stdout)

    def test_breaks_that_are_meant_have_a_reason(self):
        for line, reason in breaks.accepted().items():
            self.assertTrue(reason, line)

    def test_prose_is_left_out_of_what_is_kept_and_nothing_else(self):
        document = {"description": "x", "properties": {"description": {"type": "string", "example": "y"}}, "list": [{"summary": 1, "a": 2}]}
        self.assertEqual(breaks.without_prose(document), {"properties": {"description": {"type": "string"}}, "list": [{"a": 2}]})


unittest.main()
