"""The API reference as HTML, made from the OpenAPI document: an entry for each operation and for each schema."""
import html
import json

METHODS = ("get", "post", "put", "patch", "delete")
FILES = {"application/octet-stream", "application/x-npy", "application/x-safetensors", "application/zip"}
e = html.escape


class Reference:
    def __init__(self, contract):
        self.contract = contract
        self.search = []
        self.operations = [(method, path, item[method]) for path, item in contract["paths"].items() for method in METHODS if method in item]

    def resolve(self, node):
        while node and "$ref" in node:
            at = self.contract
            for key in node["$ref"][2:].split("/"):
                at = at[key.replace("~1", "/").replace("~0", "~")]
            node = at
        return node or {}

    def type_of(self, schema):
        """What a schema is, in a few words; named ones are links."""
        if not schema:
            return ""
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            return f'<a href="#schema-{e(name)}">{e(name)}</a>'
        if schema.get("type") == "array":
            return "list of " + self.type_of(schema.get("items"))
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return "map to " + self.type_of(schema["additionalProperties"])
        for word in ("oneOf", "anyOf", "allOf"):
            if word in schema:
                return " or ".join(self.type_of(each) for each in schema[word])
        if "enum" in schema:
            return ", ".join(f"<code>{e(json.dumps(value))}</code>" for value in schema["enum"])
        return "bytes" if schema.get("format") == "binary" else e(schema.get("format") or schema.get("type") or "any JSON")

    @staticmethod
    def limits_of(schema):
        out = []
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None or high is not None:
            out.append(f"{low} to {high}" if None not in (low, high) else f"at least {low}" if high is None else f"at most {high}")
        for what, unit in (("Length", "characters"), ("Items", "items")):
            low, high = schema.get("min" + what), schema.get("max" + what)
            if low is not None or high is not None:
                out.append(f"{low or 0} to {high if high is not None else 'any number of'} {unit}")
        if "pattern" in schema:
            out.append(f"<code>{e(schema['pattern'])}</code>")
        if "default" in schema:
            out.append(f"default <code>{e(json.dumps(schema['default']))}</code>")
        if schema.get("nullable"):
            out.append("or null")
        return "; ".join(out)

    def meaning(self, description, schema, required):
        limits = self.limits_of(schema)
        return ("<strong>required</strong> " if required else "") + e(description or "") + (f'<div class="quiet">{limits}</div>' if limits else "")

    @staticmethod
    def table(titles, rows):
        if not rows:
            return ""
        head = "".join(f'<th scope="col">{title}</th>' for title in titles)
        return ('<div class="scroll"><table><thead><tr>' + head + "</tr></thead><tbody>" +
                "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) + "</tbody></table></div>")

    def sample(self, node, depth=0):
        """A value that fits: the schema's example, else its required fields."""
        schema = self.resolve(node)
        if "example" in schema:
            return schema["example"]
        if "enum" in schema:
            return schema["enum"][0]
        if "default" in schema:
            return schema["default"]
        kind = schema.get("type")
        if kind == "array":
            return [] if depth > 4 else [self.sample(schema.get("items"), depth + 1)]
        if kind in ("integer", "number"):
            return schema.get("minimum", 0)
        if kind == "boolean":
            return True
        if kind == "object":
            return {name: self.sample(schema["properties"][name], depth + 1) for name in schema.get("required", [])}
        for parameter in self.contract["components"]["parameters"].values():
            if "pattern" in schema and self.resolve(parameter["schema"]).get("pattern") == schema["pattern"]:
                return parameter.get("example", "text")
        return "text"

    def request_of(self, method, path, operation, parameters, body):
        """What "try it" begins with."""
        for parameter in parameters:
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
        query = [f"{p['name']}={p['example']}" for p in parameters if p["in"] == "query" and p.get("required") and "example" in p]
        bodies = []
        for kind, media in body.get("content", {}).items():
            if kind in FILES:
                bodies.append({"type": kind, "file": True})
            elif kind == "text/plain":
                bodies.append({"type": kind, "text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                                                      "  %0 = stablehlo.add %a, %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"})
            elif kind == "application/json":
                value = media.get("example", self.sample(media["schema"]))
                bodies.append({"type": kind, "text": json.dumps(value, indent=2, ensure_ascii=False)})
        return {"method": method.upper(), "target": path + ("?" + "&".join(query) if query else ""), "bodies": bodies}

    def entry(self, method, path, operation):
        parameters = [self.resolve(each) for each in operation.get("parameters", [])]
        body = self.resolve(operation.get("requestBody"))
        name = operation["operationId"]
        good, bad = [], []
        for status, node in operation["responses"].items():
            answer = self.resolve(node)
            if status >= "400":
                bad.append(f'<span title="{e(answer["description"])}">{status if status != "default" else "others"}</span>')
                continue
            kinds = [e(kind) + (" " + self.type_of(media["schema"]) if kind.endswith("json") else "") for kind, media in answer.get("content", {}).items()]
            headers = [each for each in answer.get("headers", {}) if each != "X-Request-Id"]
            good.append([f"<code>{status}</code>", "<br>".join(kinds) or "no body",
                         e(answer["description"]) + (f'<div class="quiet">Headers: {e(", ".join(headers))}</div>' if headers else "")])
        request = self.request_of(method, path, operation, parameters, body)
        role = "no credentials" if operation.get("security") == [] else "role " + operation.get("x-role", "user")
        self.search.append(["operation", f"{method.upper()} {path}", f"/docs#op-{name}", f"{operation['summary']}. {operation.get('description', '')}"])
        rows = [[f"<code>{e(p['name'])}</code><div class=\"quiet\">{p['in']}</div>", self.type_of(p["schema"]),
                 self.meaning(p.get("description"), self.resolve(p["schema"]), p.get("required"))] for p in parameters]
        bodies = [[f"<code>{e(kind)}</code>", self.type_of(media.get("schema"))] for kind, media in body.get("content", {}).items()]
        return (f'<section class="entry" id="op-{name}" aria-labelledby="title-{name}" data-try="{e(json.dumps(request))}">'
                f'<h3 id="title-{name}">{e(operation["summary"])}<a class="anchor" href="#op-{name}" aria-label="Link to {e(operation["summary"])}">#</a></h3>'
                f'<p class="route"><span class="method {method}">{method.upper()}</span><code class="path">{e(path)}</code>'
                f'<span class="role">{e(role)} · <code>{name}</code></span><span class="tools"></span></p>'
                + (f"<p>{e(operation['description'])}</p>" if operation.get("description") else "")
                + ("<h4>Parameters</h4>" + self.table(("Name", "Type", "Meaning"), rows) if rows else "")
                + (f"<h4>Body{'' if body.get('required') else ' (optional)'}</h4>" + self.table(("Media type", "Document"), bodies) if bodies else "")
                + "<h4>Answers</h4>" + self.table(("Status", "Body", "Meaning"), good)
                + (f'<p class="codes">Errors: {", ".join(bad)}; as <a href="/docs/errors">problem documents</a>.</p>' if bad else "") + "</section>")

    def schema_entry(self, name, schema):
        required = set(schema.get("required", []))
        rows = [[f"<code>{e(field)}</code>", self.type_of(each), self.meaning(each.get("description") or self.resolve(each).get("description"), each, field in required)]
                for field, each in schema.get("properties", {}).items()]
        self.search.append(["schema", name, f"/docs#schema-{name}", (schema.get("description") or "") + " " + " ".join(schema.get("properties", {}))])
        limits = self.limits_of(schema)
        example = ""
        if "example" in schema:
            example = f'<div class="block wrap"><span class="tools"></span><pre>{e(json.dumps(schema["example"], indent=2, ensure_ascii=False))}</pre></div>'
        return (f'<section class="entry" id="schema-{e(name)}"><h3>{e(name)}<a class="anchor" href="#schema-{e(name)}" aria-label="Link to {e(name)}">#</a></h3>'
                + (f"<p>{e(schema['description'])}</p>" if schema.get("description") else "")
                + (self.table(("Field", "Type", "Meaning"), rows) or f"<p>{self.type_of(schema)}{'; ' + limits if limits else ''}</p>") + example + "</section>")

    @staticmethod
    def introduction(text):
        """What holds everywhere, as a list."""
        before, _, rest = text.partition(" Everywhere: ")
        rules, _, after = rest.partition(". ")
        items = "".join(f"<li>{e(rule)}</li>" for rule in rules.split("; ")) if rest else ""
        return f"<p>{e(before)}</p>" + (f"<p>Everywhere:</p><ul>{items}</ul><p>{e(after)}</p>" if items else "")

    def page(self):
        """(contents, main)"""
        info = self.contract["info"]
        main = [f'<h1>API reference</h1><p class="lead">Version {e(info["version"])} of the contract, for the server at <span data-origin>this address</span>.</p>'
                + self.introduction(info["description"]) +
                '<p>The contract itself: <a href="/openapi.yaml">openapi.yaml</a>, <a href="/openapi.json">openapi.json</a>. The server: '
                '<a href="/health">health</a>, <a href="/metrics">metrics</a>. Where it asks for a token, add <code>-H "Authorization: Bearer $TOKEN"</code>.</p>']
        contents = []
        for tag in self.contract["tags"]:
            mine = [each for each in self.operations if each[2]["tags"][0] == tag["name"]]
            main.append(f'<h2 id="tag-{tag["name"]}">{e(tag["name"].capitalize())}<a class="anchor" href="#tag-{tag["name"]}" aria-label="Link to {tag["name"]}">#</a></h2>'
                        f'<p class="quiet">{e(tag["description"])}</p>' + "".join(self.entry(*each) for each in mine))
            contents.append((tag["name"].capitalize(), [("#op-" + o["operationId"], o["summary"]) for _, _, o in mine]))
        schemas = self.contract["components"]["schemas"]
        main.append('<h2 id="schemas">Schemas</h2><p class="quiet">Documents in requests and answers.</p>'
                    + "".join(self.schema_entry(name, schema) for name, schema in schemas.items()))
        contents.append(("Schemas", [("#schema-" + name, name) for name in schemas]))
        return contents, "".join(main)
