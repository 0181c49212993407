"""The server against openapi.yaml, from outside: contract_test.py BINARY SOURCE_FOLDER.

Both ways: what the document says is served, and what is served is in the document."""

import json
import pathlib
import re
import sys
import unittest

import yaml

from contract_schema import Contract
from contract_server import Server

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
DOCUMENT = (SOURCE / "openapi/openapi.yaml").read_bytes()
CONTRACT = Contract(yaml.safe_load(DOCUMENT))


def concrete(path, operation):
    """The path with the examples of its parameters, which name nothing that exists."""
    for parameter in map(CONTRACT.resolve, operation.get("parameters", [])):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
    return path


def documented_allow(path):
    methods = {method.upper() for method in CONTRACT.document["paths"][path]}
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())


def refused_extensions():
    """(method, path, operation, role) of api/routes/models/refused.cpp: a table of paths, and the rows that are made of each."""
    text = (SOURCE / "api/routes/models/refused.cpp").read_text(encoding="utf-8")
    made = re.findall(r'\{"(\w+)", path, "(\w+)" \+ name, [^{}]*?Access::k(\w+)', text)
    table = re.findall(r'\{"(/v2/[^"]+)", "(\w+)", k\w+\}', text)
    return [(method, path, verb + operation, access.lower()) for path, operation in table for method, verb, access in made]


def words(header):
    return {word.strip() for word in (header or "").split(",")}


class Document(unittest.TestCase):
    """What can be seen without a server."""

    def test_routes_of_the_sources_are_those_of_the_document(self):
        sources = set()
        for file in (SOURCE / "api/routes").rglob("*.cpp"):
            text = file.read_text(encoding="utf-8")
            sources |= set(re.findall(r'\{"(GET|POST|PUT|PATCH|DELETE)",\s*"([^"]+)",\s*"([^"]+)"', text))
            # documents.cpp writes its open routes with a helper.
            sources |= {("GET", *row) for row in re.findall(r'\bopen\("([^"]+)",\s*"([^"]+)"', text)}
        sources |= {row[:3] for row in refused_extensions()}
        # A document has no word for a parameter that takes the rest of the path.
        sources = {(method, path.replace("...}", "}"), operation) for method, path, operation in sources}
        document = {(method, path, operation["operationId"]) for method, path, operation in CONTRACT.operations()}
        self.assertEqual(sources - document, set(), "not in openapi.yaml")
        self.assertEqual(document - sources, set(), "not in api/routes")

    def test_posts_that_ignore_keys_are_those_that_the_header_lists(self):
        ignoring = set()
        for method, path, operation in CONTRACT.operations():
            takes = any(CONTRACT.resolve(each)["name"] == "Idempotency-Key" for each in operation.get("parameters", []))
            if method == "POST" and not takes and not path.startswith("/v2"):
                ignoring.add(operation["operationId"])
        header = CONTRACT.document["components"]["parameters"]["IdempotencyKey"]["description"]
        listed = re.search(r"ignore it.*?\((.*?), and all below /v2\)", header)[1]
        self.assertEqual(words(listed), ignoring)

    def test_roles_of_the_sources_are_those_of_the_document(self):
        sources = {}
        for file in (SOURCE / "api/routes").rglob("*.cpp"):
            text = file.read_text(encoding="utf-8")
            rows = re.findall(r'\{"(?:GET|POST|PUT|PATCH|DELETE)",\s*"[^"]+",\s*"([^"]+)"[^{]*?Access::k(\w+)', text)
            sources |= {operation: access.lower() for operation, access in rows}
            sources |= {operation: "open" for operation in re.findall(r'\bopen\("[^"]+",\s*"([^"]+)"', text)}
        sources |= {operation: role for _, _, operation, role in refused_extensions()}
        document = {}
        for _, _, operation in CONTRACT.operations():
            is_open = operation.get("security") == []
            self.assertNotEqual(is_open, "x-role" in operation, operation["operationId"])
            document[operation["operationId"]] = operation.get("x-role", "open")
        self.assertEqual(sources, document)

    def test_dtypes_are_those_of_the_table(self):
        table = (SOURCE / "service/tensor/dtype.h").read_text(encoding="utf-8")
        names = re.findall(r'\{DType::k\w+,\s+"([^"]+)"', table)
        self.assertEqual(CONTRACT.document["components"]["schemas"]["DType"]["enum"], names)

    def test_objects_are_named_and_closed_or_open_by_word(self):
        for name, schema in CONTRACT.document["components"]["schemas"].items():
            if schema.get("type") == "object":
                self.assertIn("additionalProperties", schema, name)
            for field, inner in schema.get("properties", {}).items():
                while "items" in inner:
                    inner = inner["items"]
                self.assertNotIn("properties", inner, f"{name}.{field}: give the object a name")

    def test_examples_fit_their_schemas(self):
        for name, schema in CONTRACT.document["components"]["schemas"].items():
            if "example" in schema:
                self.assertEqual(CONTRACT.mistakes(schema["example"], schema), [], name)

    def test_checker_finds_mistakes(self):
        wrong = {"dtype": "float31", "shape": [-1], "more": 1}
        found = "\n".join(CONTRACT.mistakes(wrong, {"$ref": "#/components/schemas/Value"}))
        for place in ("/dtype", "/shape/0", "more is not in the contract"):
            self.assertIn(place, found)


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(BINARY)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def check(self, operation_id, answer):
        """Status, headers and body of the answer are as the document says."""
        responses = CONTRACT.operation(operation_id)["responses"]
        shown = f"{operation_id} answered {answer.status}: {answer.body[:400]!r}"
        self.assertIn(str(answer.status), responses, shown)
        response = CONTRACT.resolve(responses[str(answer.status)])
        for name, header in response.get("headers", {}).items():
            header = CONTRACT.resolve(header)
            value = answer.headers.get(name)
            self.assertTrue(value is not None or not header.get("required"), f"{shown} without {name}")
            if value is not None:
                schema = CONTRACT.resolve(header["schema"])
                value = int(value) if schema["type"] == "integer" else value
                self.assertEqual(CONTRACT.mistakes(value, schema), [], f"{shown}: {name}")
        content = response.get("content", {})
        if not content:
            self.assertEqual(answer.body, b"", shown)
            return answer
        self.assertIn(answer.media, content, shown)
        if answer.media.endswith("json") and operation_id != "getOpenapiJson":
            self.assertEqual(CONTRACT.mistakes(answer.json(), content[answer.media]["schema"]), [], shown)
        return answer

    def call(self, operation_id, target, body=None, headers=None, status=200):
        method = next(m for m, _, o in CONTRACT.operations() if o["operationId"] == operation_id)
        answer = self.check(operation_id, self.server.request(method, target, body, headers))
        self.assertEqual(answer.status, status, f"{operation_id}: {answer.body[:400]!r}")
        return answer

    def test_documents_are_the_repositorys(self):
        self.assertEqual(self.call("getOpenapiYaml", "/openapi.yaml").body, DOCUMENT)
        self.assertEqual(self.call("getOpenapiJson", "/openapi.json").json(), CONTRACT.document)
        reference = str(self.call("getDocs", "/docs").body)
        for _, _, operation in CONTRACT.operations():
            self.assertIn(f'id="op-{operation["operationId"]}"', reference)
        for name in CONTRACT.document["components"]["schemas"]:
            self.assertIn(f'id="schema-{name}"', reference)
        self.assertIn('id="stablehlo.add"', str(self.call("getOpsPage", "/docs/ops").body))
        home = self.call("getHome", "/")
        self.check("getHome", self.server.request("GET", "/", None, {"If-None-Match": home.headers["ETag"]}))
        for name in re.findall(r'href="/docs/guides/([^"#]+)"', str(home.body)):
            self.call("getGuide", "/docs/guides/" + name)
        self.call("getGuide", "/docs/guides/nothing", status=404)
        for file in sorted((SOURCE / "api/console").iterdir()):
            if file.suffix in (".css", ".js", ".svg"):
                self.assertEqual(self.call("getDocsAsset", "/docs/assets/" + file.name).body, file.read_bytes())
        kinds = {entry[0] for entry in self.call("getDocsAsset", "/docs/assets/search.json").json()}
        self.assertEqual(kinds, {"guide", "operation", "schema", "op", "error"})

    def test_options_answers_the_methods_of_the_document(self):
        for path, item in CONTRACT.document["paths"].items():
            with self.subTest(path=path):
                answer = self.server.request("OPTIONS", concrete(path, next(iter(item.values()))))
                self.assertEqual(answer.status, 204)
                self.assertEqual(words(answer.headers.get("Allow")), documented_allow(path))

    def test_other_methods_are_405_with_allow(self):
        for path, item in CONTRACT.document["paths"].items():
            for method in sorted((METHODS | {"TRACE", "BREW"}) - documented_allow(path)):
                with self.subTest(path=path, method=method):
                    operation = next(iter(item.values()))
                    answer = self.server.request(method, concrete(path, operation))
                    self.assertEqual(answer.status, 405, answer.body)
                    self.assertEqual(words(answer.headers.get("Allow")), documented_allow(path))
                    self.check(operation["operationId"], answer)

    def test_ids_that_name_nothing_are_404(self):
        for method, path, operation in CONTRACT.operations():
            if "{id}" not in path or operation["operationId"] == "putJob":  # which makes what it names
                continue
            with self.subTest(operation=operation["operationId"]):
                body = None
                if "requestBody" in operation:
                    media = CONTRACT.resolve(operation["requestBody"])["content"].get("application/json")
                    body = CONTRACT.resolve(media["schema"]).get("example", {"mesh": "mesh_" + "0" * 32, "spec": []}) if media else b""
                answer = self.server.request(method, concrete(path, operation), body)
                self.assertEqual(answer.status, 404, answer.body)
                self.check(operation["operationId"], answer)

    def test_path_that_is_none_is_404(self):
        answer = self.server.request("GET", "/v1/nothing")
        self.assertEqual((answer.status, answer.media, answer.json()["code"]), (404, "application/problem+json", "not_found"))

    def test_documents_of_the_server(self):
        for operation_id, target in (("getInfo", "/v1/info"), ("listDevices", "/v1/devices"), ("listOps", "/v1/ops"),
                                     ("listFunctions", "/v1/functions"),
                                     ("listEffectKinds", "/v1/effects"), ("getErrorCodes", "/docs/errors"),
                                     ("getHealth", "/health"), ("getLivez", "/livez"), ("getReadyz", "/readyz?verbose"),
                                     ("getErrorCodes", "/docs/errors?pretty"), ("getStartupz", "/startupz"), ("getMetrics", "/metrics")):
            with self.subTest(operation=operation_id):
                self.call(operation_id, target)
        self.assertEqual(self.call("getMe", "/v1/me").json()["principal"], "anonymous")
        # Without a tokens file nobody is an admin.
        self.call("listPrincipals", "/v1/principals", status=403)
        self.call("reloadTokens", "/v1/tokens:reload", status=403)
        self.call("getSecurityContact", "/.well-known/security.txt", status=404)

    def test_meshes(self):
        example = CONTRACT.document["components"]["schemas"]["MeshInput"]["example"]
        mesh = self.call("createMesh", "/v1/meshes", example, status=201).json()
        self.assertEqual(self.call("createMesh", "/v1/meshes", mesh).json(), mesh)
        at = "/v1/meshes/" + mesh["id"]
        self.assertEqual(self.call("getMesh", at).json(), mesh)
        self.call("patchMesh", at, mesh)
        self.call("patchMesh", at, {"axis_names": ["x"], "shape": [4], "devices": [0, 1, 2, 3]}, status=409)
        self.assertIn(mesh, self.call("listMeshes", "/v1/meshes").json()["items"])
        self.call("getMesh", at + "?as_process=0")
        self.assertEqual(self.call("getLocalMesh", at + "/local").json(), mesh)
        abstract = self.call("createMesh", "/v1/meshes", {"axes": [{"name": "x", "size": 64}]}, status=201).json()
        self.assertTrue(abstract["is_abstract"])
        self.call("deleteMesh", "/v1/meshes/" + abstract["id"], status=204)
        self.call("createMesh", "/v1/meshes", {"axis_names": ["x", "x"], "shape": [2, 2], "devices": [0, 1, 2, 9]}, status=422)

    def test_uploads(self):
        begun = {"Content-Type": "application/octet-stream", "Upload-Complete": "?0"}
        part = {"Content-Type": "application/partial-upload", "Upload-Complete": "?0"}
        # The operation answers with the upload, which is beyond the contract: the fields that ask for it are not in it.
        document = self.server.request("POST", "/v1/arrays?dtype=uint8&shape=3", b"a", begun).json()
        at = "/v1/uploads/" + document["id"]
        self.assertEqual(self.call("getUpload", at).json()["offset"], 1)
        self.call("appendToUpload", at, b"b", {**part, "Upload-Offset": "1"}, 204)
        self.call("appendToUpload", at, b"b", {**part, "Upload-Offset": "1"}, 409)
        self.call("appendToUpload", at, b"b", {**part, "Content-Type": "text/plain", "Upload-Offset": "2"}, 415)
        self.call("appendToUpload", at, b"b", part, 422)
        made = self.call("appendToUpload", at, b"c", {**part, "Upload-Offset": "2", "Upload-Complete": "?1"}, 201).json()
        self.assertEqual(self.call("getArrayData", f"/v1/arrays/{made['id']}/data").body, b"abc")
        self.call("appendToUpload", at, b"c", {**part, "Upload-Offset": "3"}, 400)
        self.assertEqual(self.call("getUpload", at).json()["result"], "/v1/arrays/" + made["id"])
        self.call("cancelUpload", at, status=204)
        self.call("getUpload", at, status=404)

    def test_zarr(self):
        at = "/v1/zarr/v3/z"
        document = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 7, "codecs": [{"name": "bytes"}],
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"}}
        self.call("putZarrNode", at + "/zarr.json", {"zarr_format": 3, "node_type": "group"}, status=204)
        pending = self.call("putZarrNode", at + "/w/zarr.json", document, status=201).json()
        self.assertEqual((pending["state"], pending["pending"]["parts"]), ("pending", 2))
        self.call("putZarrNode", at + "/w/zarr.json", {**document, "data_type": "bfloat16"}, status=422)
        self.call("putZarrNode", at + "/w/zarr.json?durability=never", document, status=422)
        self.call("putZarrNode", at + "/w/zarr", document, status=404)
        self.call("putZarrNode", at + "/w/c/1", b"ab", {"Content-Type": "application/octet-stream"}, 204)
        self.call("putZarrNode", at + "/w/c/1", b"a", {"Content-Type": "application/octet-stream"}, 400)
        self.call("putZarrNode", at + "/v/c/1", b"ab", {"Content-Type": "application/octet-stream"}, 409)
        self.call("getZarrNode", at + "/w/zarr.json", status=404)
        self.assertEqual(self.call("getZarrNode", at.replace("v3", "v3-pending") + "/w/c/1").body, b"ab")
        self.call("deleteZarrNode", at + "/w/c/0", status=204)
        self.call("commitZarr", at + ":commit?replace=perhaps", status=422)
        self.assertEqual([each["id"] for each in self.call("commitZarr", at + ":commit", status=201).json()["items"]], [pending["id"]])
        self.call("commitAllZarr", "/v1/zarr/v3:commit", status=404)
        self.assertEqual(self.call("getZarrNode", at + "/w/c/0").body, b"\7\7ab")
        self.call("getZarrNode", at + "/w/c/0", headers={"Range": "bytes=1-2"}, status=206)
        self.assertIn("w", self.call("getZarrNode", at + "/zarr.json").json()["consolidated_metadata"]["metadata"])
        self.call("deleteZarrNode", at + "/w/zarr.json", status=409)
        self.call("deleteZarrNode", at + "/zarr.json", status=204)
        self.call("putZarrNode", at + "/w/zarr.json", document, status=201)
        self.call("commitZarr", at + ":commit", status=409)
        self.call("commitZarr", at + ":commit?replace=true", status=201)
        self.call("putZarrNode", at + "/u/zarr.json", document, status=201)
        self.call("commitAllZarr", "/v1/zarr/v3:commit", status=201)

    def test_arrays(self):
        mesh = self.call("createMesh", "/v1/meshes", {"axes": [{"name": "x", "size": 2}], "devices": [0, 1]}, status=201).json()["id"]
        bytes_ = bytes(range(32))
        raw = self.call("createArray", f"/v1/arrays?dtype=float32&shape=4,2&mesh={mesh}&spec=x&name=a", bytes_,
                        {"Content-Type": "application/octet-stream"}, 201)
        array = raw.json()
        at = raw.headers["Location"]
        self.assertEqual(self.call("getArray", at).json(), array)
        whole = self.call("getArrayData", at + "/data")
        self.assertEqual(whole.body, bytes_)
        self.assertEqual((whole.headers["Array-Shape"], whole.headers["Array-Dtype"]), ("4,2", "float32"))
        self.call("getArrayData", at + "/data", headers={"If-None-Match": whole.headers["ETag"]}, status=304)
        part = self.call("getArrayData", at + "/data", headers={"Range": "bytes=4-7"}, status=206)
        self.assertEqual(part.body, bytes_[4:8])
        self.call("getArrayData", at + "/data", headers={"Range": "bytes=99-"}, status=416)
        self.call("getArrayData", at + "/data", headers={"Accept": "image/png"}, status=406)
        # What generated clients say.
        self.call("getArrayData", at + "/data", headers={"Accept": "application/problem+json"})
        self.assertEqual(self.call("getArrayData", at + "/data?slice=1:2").body, bytes_[8:16])
        self.call("getArrayData", at + "/data?slice=hello", status=422)
        self.assertEqual(len(self.call("listShards", at + "/shards").json()["items"]), 2)
        self.assertEqual(self.call("getShardData", at + "/shards/1").body, bytes_[16:])
        copy = self.call("reshardArray", at + ":reshard", {"mesh": mesh, "spec": [[], ["x"]]}, status=201)
        self.assertEqual(self.call("getArrayData", copy.headers["Location"] + "/data").body, bytes_)
        self.call("getArray", at + "?wait=ready")
        self.call("listShards", at + "/shards?scope=local&as_process=0")
        self.call("getShardingText", at + "/sharding.txt")
        self.call("getShardingSvg", at + "/sharding.svg")
        self.call("compareArrays", at + ":compare", {"array": copy.json()["id"], "mode": "bits"})
        self.call("compareArrays", at + ":compare", {"array": copy.json()["id"]}, status=501)
        self.call("resolveSharding", "/v1/shardings:resolve", {"shape": [8, 8], "parts": [2, 1]})
        part = {"dtype": "float32", "shape": [2], "data": [1, 2]}
        whole = {"shape": [4], "mesh": mesh, "spec": [["x"]]}
        self.call("assembleArray", "/v1/arrays:assemble", {**whole, "shards": [{"value": part}, {"value": part}]}, status=201)
        pending = self.call("assembleArray", "/v1/arrays:assemble", {**whole, "dtype": "float32"}, status=201).headers["Location"]
        self.assertEqual(self.call("putShardData", pending + "/shards/0", part).json()["state"], "pending")
        self.assertEqual(self.call("putShardData", pending + "/shards/1", part).json()["state"], "ready")
        renewed = self.call("putArrayData", at + "/data", bytes_[::-1], {"If-Match": raw.headers["ETag"]})
        self.assertEqual((renewed.json()["version"], self.call("getArrayData", at + "/data").body), (2, bytes_[::-1]))
        self.call("putArrayData", at + "/data", bytes_, {"If-Match": raw.headers["ETag"]}, 412)
        self.call("putArrayData", at + "/data?slice=0:1", bytes_[:8], {"Content-Type": "application/octet-stream"})
        self.call("putArrayData", at + "/data", part, status=422)
        zarr = at + "/v3/zarr/"
        self.assertEqual(self.call("getZarr", zarr + "zarr.json").json()["shape"], [4, 2])
        chunk = self.call("getZarr", zarr + "c/1/0").body
        self.assertEqual((chunk, self.call("getZarr", zarr + "1.0", headers={"Range": "bytes=2-5"}, status=206).body), (bytes_[15::-1], chunk[2:6]))
        self.call("getZarr", zarr + "c/2/0", status=404)
        self.call("getZarr", at + "/v1/zarr/zarr.json", status=410)
        self.assertEqual(self.call("getCurrentZarr", at + "/zarr/v3/c/1/0").body, chunk)
        self.call("getCurrentZarr", at + "/zarr/v3/.zarray", status=404)
        several = f"/v1/arrays:export?id={array['id']}&id={copy.json()['id']}&as=a&as=b"
        file = self.call("exportArrays", several)
        self.assertEqual(self.call("exportArrays", several, headers={"Range": "bytes=0-7"}, status=206).body, file.body[:8])
        self.call("exportArrays", several + "&format=npz&compression=deflate")
        self.call("exportArrays", "/v1/arrays:export", status=422)
        made = self.call("importArrays", f"/v1/arrays:import?mesh={mesh}&spec=x&format=safetensors&prefix=p.", file.body, status=201).json()
        self.assertEqual([each["name"] for each in made["items"]], ["p.a", "p.b"])
        self.call("importArrays", "/v1/arrays:import", file.body, {"Content-Type": "image/png"}, 415)
        self.call("importArrays", "/v1/arrays:import?format=npz", file.body, status=400)
        binary = {"Content-Type": "application/octet-stream"}
        self.call("importArrays", "/v1/arrays:import?prefix=p.&unique=true", file.body, binary, 409)
        self.assertEqual(self.call("exportArrays", "/v1/arrays:export?prefix=p.").body, file.body)
        self.call("exportArrays", "/v1/arrays:export?prefix=none.", status=404)
        self.assertEqual(self.call("deleteArrays", "/v1/arrays?prefix=p.").json(), {"deleted": 2})
        self.call("deleteArrays", "/v1/arrays", status=422)
        up = self.call("uploadArray", "/v1/arrays:upload?dtype=uint8&shape=32&name=by%2Fn&unique=true", bytes_, binary, 201)
        self.call("uploadArray", "/v1/arrays:upload?dtype=uint8&shape=32&name=by%2Fn", bytes_, binary, 409)
        name = "/v1/arrays/by-name/by%2Fn"
        self.assertEqual(self.call("getArrayByName", name).json(), up.json())
        self.call("getArrayByName", name, headers={"If-None-Match": up.headers["ETag"]}, status=304)
        self.assertEqual(self.call("getArrayDataByName", name + "/data").body, bytes_)
        self.call("getArrayDataByName", name + "/data", headers={"Range": "bytes=4-7"}, status=206)
        self.call("putArrayDataByName", name + "/data", bytes_[::-1], binary)
        self.call("putArrayDataByName", name + "/data?dtype=uint8&shape=1", b"x", binary, 409)
        self.call("putArrayDataByName", name + "/data?dtype=uint8&shape=1", b"x", {**binary, "If-Match": up.headers["ETag"]}, 412)
        self.call("putArrayDataByName", name + "/data?dtype=uint8&shape=1", b"x", {**binary, "If-Match": "*"}, 201)
        self.call("deleteArrayByName", name, status=204)
        self.call("getArrayByName", name, status=404)
        self.call("listArrays", "/v1/arrays?prefix=by%2F")
        self.call("moveArray", pending + ":move", status=201)
        self.call("moveArray", pending + ":move", status=409)
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + bytes_ + b"\r\n--b--\r\n"
        self.call("createArray", "/v1/arrays?dtype=uint8&shape=32", form, {"Content-Type": "multipart/form-data; boundary=b"}, 201)
        value = {"dtype": "bfloat16", "shape": [2], "data": [1.5, "NaN"]}
        self.call("createArray", "/v1/arrays?durability=memory", value, status=201)
        self.call("createArray", "/v1/arrays", {**value, "more": 1}, status=422)
        self.call("createArray", "/v1/arrays", b"x", {"Content-Type": "image/png"}, 415)
        page = self.call("listArrays", "/v1/arrays?limit=1")
        self.assertIn('rel="next"', page.headers["Link"])
        self.assertEqual(len(page.json()["items"]), 1)
        self.call("listArrays", "/v1/arrays?limit=0", status=422)
        self.call("deleteArray", at, headers={"If-Match": '"other"'}, status=412)
        self.call("deleteArray", at, headers={"If-Match": self.call("getArray", at).headers["ETag"]}, status=204)
        self.call("deleteArrayByPost", copy.headers["Location"] + ":delete", status=204)
        self.call("getArrayData", at + "/data", status=404)

    def test_models(self):
        example = CONTRACT.document["components"]["schemas"]["ModelInput"]["example"]
        made = self.call("putModel", "/v1/models/contract", example, status=201).json()
        self.assertEqual(self.call("putModel", "/v1/models/contract", example).json(), made)
        self.assertEqual(self.call("getModel", "/v1/models/contract?version=1").json(), made)
        self.call("listModels", "/v1/models?limit=1")
        self.call("putModel", "/v1/models/contract", {**example, "nonsense": 1}, status=422)
        self.call("putModel", "/v1/models/contract", example, {"Content-Type": "text/plain"}, 415)
        for operation, target in (("getServerMetadata", "/v2"), ("getServerMetadataAsPublished", "/v2/"), ("getServerLive", "/v2/health/live"),
                                  ("getServerReady", "/v2/health/ready"), ("getStatistics", "/v2/models/stats")):
            self.call(operation, target)
        ask = CONTRACT.document["components"]["schemas"]["InferenceRequest"]["example"]
        for part, at in (("", "/v2/models/contract"), ("Version", "/v2/models/contract/versions/1")):
            for kind, end in (("Metadata", ""), ("Ready", "/ready"), ("Config", "/config"), ("Statistics", "/stats")):
                self.call(f"getModel{part}{kind}", at + end)
                self.call(f"getModel{part}{kind}", (at + end).replace("contract", "nothing"), status=404)
            infer = "infer" + part
            self.assertEqual(self.call(infer, at + "/infer", ask).json()["outputs"][0]["data"], [2, 4])
            answer = self.call(infer, at + "/infer", {**ask, "parameters": {"binary_data_output": True}})
            self.assertEqual(len(answer.body), int(answer.headers["Inference-Header-Content-Length"]) + 8)
            self.call(infer, at + "/infer", {"inputs": []}, status=422)
            self.call(infer, at + "/infer", b"{", status=400)
            self.call(infer, at + "/infer", b"{}", {"Content-Type": "text/plain"}, 415)
        self.call("getRepositoryIndex", "/v2/repository/index")
        self.call("unloadModel", "/v2/repository/models/contract/unload", {})
        self.call("infer", "/v2/models/contract/infer", ask, status=409)
        self.call("loadModel", "/v2/repository/models/contract/load")
        self.call("loadModel", "/v2/repository/models/nothing/load", status=404)
        for operation, target in (("getSystemSharedMemory", "/v2/systemsharedmemory/status"), ("getCudaSharedMemory", "/v2/cudasharedmemory/status"),
                                  ("changeSystemSharedMemory", "/v2/systemsharedmemory/region/a/register"),
                                  ("changeCudaSharedMemory", "/v2/cudasharedmemory/unregister"), ("getTraceSetting", "/v2/trace/setting"),
                                  ("changeTraceSetting", "/v2/trace/setting"), ("getModelTraceSetting", "/v2/models/contract/trace/setting"),
                                  ("changeModelTraceSetting", "/v2/models/contract/trace/setting"), ("getLogSettings", "/v2/logging"),
                                  ("changeLogSettings", "/v2/logging")):
            self.assertEqual(self.call(operation, target, {} if operation.startswith("change") else None, status=422).json()["code"],
                             "unsupported_extension")
        self.call("deleteModel", "/v1/models/contract?version=2", status=404)
        self.call("deleteModel", "/v1/models/contract", status=204)

    def test_programs(self):
        example = CONTRACT.document["components"]["schemas"]["ProgramInput"]["example"]
        program = self.call("createProgram", "/v1/programs", example, status=201).json()
        self.call("createProgram", "/v1/programs", example["text"], {"Content-Type": "text/plain"})
        at = "/v1/programs/" + program["id"]
        self.assertEqual(self.call("getProgram", at).json()["text"], example["text"])
        self.call("listPrograms", "/v1/programs")
        tree = self.call("createProgram", "/v1/programs", {**example, "in_tree": [{"a": "*"}], "out_tree": "*", "doc": "does it"}, status=201).json()
        self.call("getProgram", "/v1/programs/" + tree["id"])
        run = {"program": {"id": tree["id"]}, "arguments": [{"a": [1, 2]}], "num_partitions": 2}
        self.assertEqual(self.call("run", "/v1/run", run).json()["partitions"]["devices"], [0, 1])
        self.call("run", "/v1/run", {**run, "arguments": [1]}, status=422)
        self.call("resolveCall", "/v1/calls:resolve", {"arguments": [{"a": 1}, 2], "donate": [0], "specs": [None, "x"]})
        self.call("resolveCall", "/v1/calls:resolve", {"arguments": [1], "specs": [[1, 2]]}, status=422)
        refused = self.call("createProgram", "/v1/programs", {"text": "func.func @main() {\n  nonsense\n}"}, status=422).json()
        self.assertEqual(refused["errors"][0]["line"], 2)
        placed = CONTRACT.document["components"]["schemas"]["PlacementInput"]["example"]
        for operation, verb in (("explainProgram", ":explain"), ("partitionProgram", ":partition")):
            with self.subTest(operation=operation):
                json_of = {"Accept": "application/json"}
                self.call(operation, at + verb, {}, json_of)
                self.assertEqual(self.call(operation, at + verb, placed, json_of).json()["devices"], 4)
                self.assertEqual(self.call(operation, at + verb + "?format=text", placed).media, "text/plain")
                self.call(operation, at + verb + "?format=pdf", {}, status=422)
                self.call(operation, at + verb, {}, {"Accept": "image/png"}, 406)
                self.call(operation, at + verb, {"in_shardings": [{"spec": [["q"]]}]}, status=422)
                self.call(operation, at + verb, {"nonsense": 1}, status=422)
        self.assertIn("func.return", self.call("lowerProgram", at + ":stablehlo", {}).body.decode())
        self.call("lowerProgram", at + ":stablehlo", {"arguments": [1]}, status=422)
        numpy = self.call("createProgram", "/v1/programs", {"format": "numpy", "text": "def f(x): return x * 2"}, status=201).json()
        self.assertEqual(numpy["parameters"], ["x"])
        lowered = self.call("lowerProgram", f"/v1/programs/{numpy['id']}:stablehlo", {"arguments": [{"dtype": "float32", "shape": [3]}]})
        self.assertIn("tensor<3xf32>", lowered.body.decode())
        self.call("lowerProgram", f"/v1/programs/{numpy['id']}:stablehlo", {}, status=422)
        self.call("suggestShardings", at + ":suggest", placed)
        self.call("suggestShardings", at + ":suggest", {}, status=422)
        self.assertEqual(self.call("explainProgram", at + ":explain?format=svg", placed).media, "image/svg+xml")
        stages = self.call("explainProgram", at + ":explain?stages=partition,parse", placed).json()["stages"]
        self.assertEqual([stage["name"] for stage in stages], ["parse", "partition"])
        self.assertEqual(len(self.call("explainProgram", at + ":explain?stages=all", placed).json()["stages"]), 10)
        self.call("explainProgram", at + ":explain?stages=fusion", placed, status=422)
        self.call("explainProgram", at + ":explain?stages=all&format=text", placed, status=422)
        self.call("deleteProgram", at, status=204)

    def test_runs_and_sessions(self):
        example = CONTRACT.document["components"]["schemas"]["RunInput"]["example"]
        run = self.call("run", "/v1/run", example)
        self.assertEqual(run.json()["results"][0]["data"], [3, -4])
        self.assertIn("run;dur=", run.headers["Server-Timing"])
        stored = self.call("run", "/v1/run", {**example, "results": {"encoding": "array"}}).json()["results"][0]
        self.call("run", "/v1/run", {**example, "arguments": [{"array": stored["array"], "slice": "0:2"}]})
        self.call("run", "/v1/run", {**example, "nonsense": 1}, status=422)
        self.call("run", "/v1/run", b"{", {"Content-Type": "application/json"}, 400)
        session = self.call("createSession", "/v1/sessions", {"name": "contract"}, status=201)
        at = session.headers["Location"]
        accepted = self.call("createJob", at + "/jobs", example, {"Prefer": "respond-async"}, 202)
        job = self.call("getJob", accepted.headers["Location"] + "?wait=60").json()
        self.assertEqual((job["state"], job["answer"]["results"][0]["data"]), ("done", [3, -4]))
        named = "/v1/jobs/job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b42"
        self.call("putJob", named, example, status=428)
        self.call("putJob", named, example, {"If-None-Match": "*", "Prefer": "wait=60"}, 201)
        self.call("putJob", named, example, {"If-None-Match": "*"}, 412)
        self.call("getJob", named, headers={"If-None-Match": "*"}, status=304)
        first = self.call("createJob", at + "/jobs", example, {"Idempotency-Key": "one"})
        again = self.call("createJob", at + "/jobs", example, {"Idempotency-Key": "one"})
        self.assertEqual((again.headers["Idempotency-Replayed"], again.body), ("true", first.body))
        self.call("deleteJob", first.headers["Location"], status=204)
        self.call("createJob", at + "/jobs", example, {"Idempotency-Key": "one"}, 404)
        self.call("sessionBarrier", at + "/barrier")
        self.assertEqual(self.call("resumeSession", at + ":resume").json()["state"], "open")
        self.call("createSession", "/v1/sessions", {"on_error": "stop"}, status=422)
        halting = self.call("createSession", "/v1/sessions", {"on_error": "halt"}, status=201).headers["Location"]
        waits = ('func.func @main(%t: !stablehlo.token) -> tensor<f32> { %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "q"}> : '
                 "(!stablehlo.token) -> (tensor<f32>, !stablehlo.token) return %0#0 : tensor<f32> }")
        late = {"program": {"text": waits}, "arguments": [], "deadline": 0.05}
        self.call("createJob", halting + "/jobs", late, status=422)
        self.assertEqual(self.call("getSession", halting).json()["halted_by"], 1)
        self.call("createJob", halting + "/jobs", example, status=409)
        self.call("resumeSession", halting + ":resume", headers={"Idempotency-Key": "on"})
        again = self.call("resumeSession", halting + ":resume", headers={"Idempotency-Key": "on"})
        self.assertEqual((again.headers["Idempotency-Replayed"], again.json()["state"]), ("true", "open"))
        self.call("createJob", halting + "/jobs", example)
        mesh = self.server.request("POST", "/v1/meshes", {"axes": [{"name": "x", "size": 2}], "devices": [0, 1]}).json()["id"]
        self.assertEqual(self.call("enterMesh", at + "/mesh", {"mesh": mesh}).json()["depth"], 1)
        self.call("getSessionMesh", at + "/mesh?as_process=0")
        self.call("leaveMesh", at + "/mesh")
        self.call("leaveMesh", at + "/mesh", status=409)
        self.call("listSessionJobs", at + "/jobs")
        self.call("listJobs", "/v1/jobs")
        self.call("listEffects", at + "/effects")
        self.call("listSessions", "/v1/sessions")
        self.assertEqual(self.call("getSession", at).json()["jobs"], 2)
        self.call("deleteSession", at, status=204)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
