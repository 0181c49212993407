"""What schemathesis is told about the contract beyond its schemas.

Two checks of the tool are wrapped. A request that fits its schema must be accepted, or refused with a code or a detail for what no
schema can say (two fields that disagree, an id that is gone, a program that is wrong). A request that breaks its schema must be
refused, unless it is one of the short forms that openapi/README.md lists as taken beyond the document."""

import copy
import re

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi import checks as builtin

# Codes that are about meaning. invalid_request, invalid_query and malformed_... are about form: they need an entry in MEANINGS.
MEANING_CODES = {
    "array_donated", "array_lost", "budget_exceeded", "deadline_exceeded", "deleted_or_donated", "dependency_failed", "device_mismatch",
    "donation_unusable", "effects_not_supported", "empty_mesh", "idempotency_key_reused", "invalid_argument", "invalid_array", "invalid_mesh",
    "invalid_program", "invalid_spec", "memory_exceeded", "nondeterministic_job", "precondition_failed", "program_failed",
    "program_syntax", "quota_exceeded", "range_not_satisfiable", "sharding_mismatch", "too_few_devices", "unsupported_attribute",
    "unsupported_custom_call", "unsupported_dtype", "unsupported_effect", "unsupported_field", "unsupported_op",
    "unsupported_extension", "unsupported_partition", "unsupported_type", "not_implemented", "digest_mismatch", "unsupported_format",
    "malformed_body",  # files, forms and codings; of JSON it is malformed_json
}
# Refusals of form that depend on more than one field, on the server's state or on bytes of a file.
MEANINGS = re.compile("|".join([
    r"is given beside", r"is not a field that goes with", r"there is no process", r"cursor is not one", r"spec(?:_for)?: needs mesh", r"^spec_for: .* comes twice",
    r"^spec_for: the file has no", r"^name: the file holds several", r"^slice: ", r"is no kind of effect",
    r"^/?(?:shape|dtype): the file says", r"raw bytes need", r"dtype and shape say", r"the body ends", r"bytes are left after byte",
    r"^npy: ", r"^(?:Content|Repr)-Digest: ", r"^Content-Digest and Repr-Digest", r"^/(?:program/)?text: is missing", r"tree: the tree has",
    r"_tree[^:]*: a tree has lists", r"^compression: deflate is for", r"does not say what the file is", r"^as: \d+ names for",
    r"^id: two arrays are named", r"'\.' or '\.\.' segment", r"there is no mesh", r"^/donate(?:/\d+)?: (?:position|static arguments \()", r"parts/\d+/device: device \d+ is fed twice",
    r"^/shapes(?:/\d+)?: (?!expected an? )", r"^/(?:in|out)_shardings: (?!expected an? )", r"^/(?:static|callbacks): names of",
    r"^/(?:static|callbacks)/[\s\S]*: (?:names of|the function)", r"^/session: is another", r"^(?:local_)?num_partitions: ",
    r"^/arguments/\d+/slice: (?!expected an? )", r"Idempotency-Key: expected", r"^/[a-z_/0-9]*parts: ",
    r"_shardings/\d+/spec: is missing", r"expected exactly one of data and base64",
    # The fields of a mesh inside of another document; by itself it is invalid_mesh.
    r"^/mesh(?:es/[\s\S]*)?/[a-z_]+(?:/\d+)*(?:/name|/size)?: (?!expected an? )",
    # An entry of a queue has values or parts.
    r"^(?:/infeed/\d+)?/values: is missing",
    # An argument is a value, a stored array or an array of a form's part; one schema has the fields of all.
    r"/(?:arguments|values)/\d+/(?:dtype|shape): is missing", r"/(?:arguments|values)/\d+/slice: is not a field",
    r"/(?:arguments|values)/\d+/member: is beside part only", r"/(?:arguments|values)/\d+/part: (?!expected an? )",
    # A program is text, base64 or a part of a form; arguments, keywords and static are for NumPy syntax.
    r"^/(?:program/)?(?:base64|part): (?!expected an? )", r"^/(?:arguments|keywords|static): is (?:missing: a program|for programs) of NumPy syntax",
    # Query parameters that need another, and words inside of one.
    r"^id: name at least one array", r"^unique: needs name", r"^dtype_for: ",
    # What a file's own bytes say.
    r"^the body is (?:raw bytes|a ZIP file)",
    r"^/results/names: is for results that are stored", r"^/batching/[a-z_]+: (?!expected an? )", r"^/(?:arguments|results): position \d+ occurs twice",
    r"^name: If-Match", r"/base64: expected base64 of \d+ bytes",
    # Elements of an array, whose rows and types have to agree; a tree of keywords may hold anything.
    r"^/(?:arguments|keywords)/[\s\S]*: (?:expected a list(?: of \d+)?, as before|expected a list of \d+ \(dimension|expected a number, as before)",
    r"^/(?:arguments|keywords)/[\s\S]*: (?:expected numbers, booleans or lists|a whole number that does not fit|booleans and numbers do not go)",
    r"^/(?:arguments|keywords)/[\s\S]*: lists are nested deeper", r"^/static/[\s\S]*: static ints have",
    # And of data, of which dtype and shape say how deep its lists are and what they hold.
    r"^/arguments/\d+/data(?:/\d+)*: expected (?:true or false|a whole number from|\[re, im\]|a number, \"NaN\")",
    r"^/program: id excludes", r"a name has 1 to 128 bytes",
    # An argument of a model is an input, a stored array or a value; one schema has the fields of all.
    r"^/arguments/\d+(?:/[a-z0-9]+)?: (?:is an input|array excludes|is a|has)",
    r"^the path, decoded, has a control character",
    # Hosts, ports and addresses of a receiver; how many bytes base64 has.
    r"^/url: ", r"^/after: the log ends", r"^/secret: expected whsec_",
    # How many inputs and outputs a model has, what they are called and hold.
    r"^/inputs: expected \d+ inputs", r"^/(?:inputs|outputs)/\d+(?:/[a-z_]+)?: (?!expected an? )",
    r"^stages: ",  # words joined by commas, and of the answer in JSON alone
]))
MEANING_STATUSES = {400, 406, 410, 412, 413, 415, 416, 422, 501}


def problem_of(response):
    try:
        return response.json()
    except Exception:
        return {}


def mistakes_of_form(response):
    """What the answer says that a schema could have said as well."""
    problem = problem_of(response)
    places = [f"{entry['pointer']}: {entry['detail']}" for entry in problem.get("errors", [])] or [problem.get("detail", "")]
    if response.status_code in MEANING_STATUSES and problem.get("code") in MEANING_CODES:
        return []
    # Of an inference request the JSON ends where a header says, or with the body: of bytes, and of a length, no schema says that.
    sent = response.request.headers or {}
    is_divided = "Inference-Header-Content-Length" in sent or str(sent.get("Content-Type", "")).startswith("application/octet-stream")
    if problem.get("code") == "malformed_json" and is_divided:
        return []
    return [place for place in places if response.status_code not in MEANING_STATUSES or not MEANINGS.search(place)]


@schemathesis.check
def requests_that_fit_are_taken(ctx, response, case):
    try:
        return builtin.positive_data_acceptance(ctx, response, case)
    except Failure as failure:
        mistakes = mistakes_of_form(response)
        if mistakes:
            failure.message += "\nWhat the schema does not say:\n  " + "\n  ".join(mistakes[:10])
            raise
        return None


# The list of openapi/README.md, as changes that turn a short form into the document's.
def without_sugar(node, key=None):
    if isinstance(node, dict):
        return {name: without_sugar(value, name) for name, value in node.items()}
    if key in ("donate", "static") and isinstance(node, int) and not isinstance(node, bool):
        return [node]
    if key == "axis_names" and isinstance(node, str):
        return [node]
    if key == "spec" and isinstance(node, list):
        return [[] if entry is None else [entry] if isinstance(entry, str) else entry for entry in node]
    if key == "arguments" and isinstance(node, list):
        return [entry if isinstance(entry, dict) else {"array": "arr_" + "0" * 36} for entry in node]
    return node


@schemathesis.check
def requests_that_do_not_fit_are_refused(ctx, response, case):
    try:
        return builtin.negative_data_rejection(ctx, response, case)
    except Failure:
        if response.status_code == PRECONDITION_FAILED:
            return None
        body = copy.deepcopy(case.body)
        if isinstance(body, (dict, list)) and without_sugar(body) != body:
            return None
        raise


# RFC 9110 13.2.2 has conditions evaluated before the rest of a request is looked at.
PRECONDITION_FAILED = 412


schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")


@schemathesis.hook
def before_call(ctx, case, kwargs):
    # A stream that is there stays open: only its refusals are looked at here, the stream itself in tests/http.
    if case.operation.definition.raw.get("operationId") == "streamEvents" and case.path_parameters:
        case.path_parameters["id"] = "ses_" + "0" * 36
    # A range of a JSON document is no JSON, whatever its type says; ranges of chunks stay.
    if case.operation.definition.raw.get("operationId") in ("getZarr", "getCurrentZarr", "getZarrNode") and case.headers and case.path_parameters:
        if not re.search(r"\d$", str(case.path_parameters.get("path"))):
            case.headers.pop("Range", None)
    # Up to a minute may be asked for, and nobody is there to end the wait: a second shows as much.
    if isinstance(case.query, dict) and str(case.query.get("wait", "")).isdecimal() and int(case.query["wait"]) in range(2, 61):
        case.query["wait"] = 1
    # Nothing completes an array that waits for parts.
    if isinstance(case.query, dict) and case.query.get("wait") == "ready":
        case.query.pop("wait")
    if isinstance(case.body, dict) and isinstance(case.body.get("deadline"), (int, float)) and 1 < case.body["deadline"] <= 86400:
        case.body["deadline"] = 1
