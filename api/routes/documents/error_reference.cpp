// The table behind GET /docs/errors.
#include "api/routes/documents/error_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "api/codecs/html.h"
#include "api/http/problem.h"
#include "service/core/error_codes.h"

namespace meshd::api {
namespace {

struct Reference {
  std::string_view code;
  std::string_view detail;  ///< the detail of such a problem
  std::string_view
      command;  ///< a shell line with this response ($URL is the server); empty where no client can cause it alone
};

constexpr Reference kReference[] = {
    {"malformed_request", "a '%' in the request target is not followed by two hex digits",
     "curl -s $URL/v1/arrays/%zz"},
    {"malformed_json", "syntax error while parsing array - unexpected end of input; expected ']'",
     R"(curl -s $URL/v1/meshes --json '{"axis_names": ["x"')"},
    {"malformed_body", "the body has 3 bytes, dtype and shape say 8",
     R"(curl -s "$URL/v1/arrays?dtype=float32&shape=2" -H 'Content-Type: application/octet-stream' --data-binary abc)"},
    {"digest_mismatch",
     "Content-Digest says sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:, the body that came has "
     "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:; send it again",
     "curl -s $URL/v1/sessions --json '{}' -H 'Content-Digest: "
     "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:'"},
    {"unauthorized", "Authorization: expected Bearer and a token",
     "curl -s $URL/v1/info -H 'Authorization: Basic YTpi'"},
    {"forbidden", "device 0 is process 0's; a process reads its own shards only",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     R"(curl -s "$URL/v1/arrays/$A/shards/0?as_process=1")"},
    {"cross_site",
     "Origin is 'https://example.org', which is another site; this server takes requests from its own pages and from "
     "origins that its operator named with --cors-origin",
     "curl -s $URL/v1/info -H 'Origin: https://example.org'"},
    {"host_not_allowed",
     "Host is 'example.org'; this server goes by 127.0.0.1 and localhost; its operator may add names with "
     "--allowed-host",
     "curl -s $URL/v1/info -H 'Host: example.org'"},
    {"not_found", "there is no array 'arr_...'", "curl -s $URL/v1/arrays/arr_00000000-0000-7000-8000-000000000000"},
    {"method_not_allowed", "this path knows GET, HEAD, OPTIONS", "curl -s -X PUT $URL/v1/info"},
    {"not_acceptable", "data is there as application/octet-stream, application/x-npy and application/json",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     "curl -s $URL/v1/arrays/$A/data -H 'Accept: image/png'"},
    {"request_timeout", "the request did not arrive in time", ""},
    {"conflict", "array 'arr_...' is complete; its shards do not change",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     R"(curl -s -X PUT $URL/v1/arrays/$A/shards/0 --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}')"},
    {"mesh_immutable", "Cannot reassign attributes of a mesh; post another one",
     R"(M=$(curl -s $URL/v1/meshes --json '{"axis_names": ["x"], "devices": [0, 1]}' | jq -r .id); curl -s -X )"
     R"(PATCH $URL/v1/meshes/$M --json '{"axis_names": ["x"], "devices": [1, 0]}')"},
    {"device_mismatch",
     R"(the request runs on devices [2,3], argument 0 lies on [0,1]; send "reshard": true to have it moved)",
     R"(M=$(curl -s $URL/v1/meshes --json '{"axis_names": ["x"], "devices": [0, 1]}' | jq -r .id); A=$(curl -s )"
     R"("$URL/v1/arrays?mesh=$M&spec=x" --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r )"
     R"(.id); curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> )"
     R"({ return %a : tensor<2xf32> }"}, "arguments": [{"array": "'$A'"}], "mesh": {"axis_names": ["x"], )"
     R"("devices": [2, 3]}}')"},
    {"sharding_mismatch",
     R"(argument 0: array 'arr_...' lies as Mesh('x': 2) @mesh, [{"x"}], the program wants @mesh, [{}]; send )"
     R"("reshard": true to have it moved)",
     R"(M=$(curl -s $URL/v1/meshes --json '{"axis_names": ["x"], "devices": [0, 1]}' | jq -r .id); A=$(curl -s )"
     R"("$URL/v1/arrays?mesh=$M&spec=x" --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r )"
     R"(.id); curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> )"
     R"({ return %a : tensor<2xf32> }"}, "arguments": [{"array": "'$A'"}], "in_shardings": [{"spec": [[]]}], )"
     R"("mesh": {"axis_names": ["x"], "devices": [0, 1]}}')"},
    {"array_in_use", "array 'arr_...' is reserved by job 'job_...'", ""},
    {"array_donated", "array 'arr_...' is deleted or donated: taken by arr_...",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     "curl -s -o /dev/null -X POST $URL/v1/arrays/$A:move; curl -s -X POST $URL/v1/arrays/$A:move"},
    {"idempotency_in_progress", "the first request with this key is still running: job job_...",
     R"(spin() { curl -s $URL/v1/run -H 'Idempotency-Key: spin' -H 'Prefer: respond-async' --json '{"program": )"
     R"({"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { %c = stablehlo.constant dense<0> : tensor<i32> %o )"
     "= stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.while(%i = %c) : tensor<i32> cond { %p = "
     "stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> "
     "} do { %j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j : tensor<i32> } return %0 : tensor<i32> }"
     R"("}, )"
     R"("arguments": [100000000], "deadline": 2}'; }; spin >/dev/null; spin)"},
    {"session_closed", "session 'ses_...' is closed and takes no jobs", ""},
    {"session_halted",
     R"(session 'ses_...' is halted: a job has failed; resume it, or queue this job with "Prefer: respond-async")",
     R"(S=$(curl -s $URL/v1/sessions --json '{"on_error": "halt"}' | jq -r .id); spin() { curl -s )"
     R"($URL/v1/sessions/$S/jobs --json '{"program": )"
     R"({"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { %c = stablehlo.constant dense<0> : tensor<i32> %o )"
     "= stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.while(%i = %c) : tensor<i32> cond { %p = "
     "stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> "
     "} do { %j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j : tensor<i32> } return %0 : tensor<i32> }"
     R"("}, )"
     R"("arguments": [2000000000], "deadline": 0.1}'; }; spin >/dev/null; spin)"},
    {"job_finished", "callback request 3 was withdrawn: job 'job_...' is over", ""},
    {"cancelled", "the job was cancelled",
     "curl -s -X PUT $URL/v1/jobs/job_00000000-0000-7000-8000-00000000000c -H 'If-None-Match: *' -o /dev/null --json "
     R"('{"program": {"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { %c = stablehlo.constant dense<0> : )"
     "tensor<i32> %o = stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.while(%i = %c) : tensor<i32> cond { %p "
     "= stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : "
     "tensor<i1> } do { %j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j : tensor<i32> } return %0 : "
     R"(tensor<i32> }"}, "arguments": [1000000000], "deadline": 20}'; curl -s -X DELETE )"
     "$URL/v1/jobs/job_00000000-0000-7000-8000-00000000000c -o /dev/null; curl -s "
     R"("$URL/v1/jobs/job_00000000-0000-7000-8000-00000000000c?wait=20")"},
    {"deleted_or_donated", "array 'arr_...' is deleted or donated: taken by arr_...",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     "curl -s -o /dev/null -X POST $URL/v1/arrays/$A:move; curl -s $URL/v1/arrays/$A/data"},
    {"array_lost", "array 'arr_...' was in memory only and is lost", ""},
    {"precondition_failed", R"(the resource is at "arr_....1", If-Match says "other"; read it again and decide anew)",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     R"(curl -s -X DELETE $URL/v1/arrays/$A -H 'If-Match: "other"')"},
    {"body_too_large", "the body has 5000000 bytes, at most 4194304 are taken here",
     "head -c 5000000 /dev/zero | curl -s $URL/v1/meshes -H 'Content-Type: application/json' --data-binary @-"},
    {"quota_exceeded", "an array of 4000000000000 bytes is over the limit of 4294967296 bytes",
     R"(curl -s "$URL/v1/arrays?dtype=float32&shape=1000000,1000000" -H 'Content-Type: application/octet-stream' -H )"
     "'Transfer-Encoding: chunked' --data-binary abc"},
    {"uri_too_long", "the path has 3004 bytes, at most 2048 are taken",
     "curl -s $URL/v1/$(printf 'a%.0s' $(seq 3000))"},
    {"unsupported_media_type",
     "'image/png' is not read here; add -H 'Content-Type: application/x-npy' for a .npy file, -H 'Content-Type: "
     "application/octet-stream' with ?dtype= and ?shape= for raw bytes, or send a JSON value",
     "curl -s $URL/v1/arrays -H 'Content-Type: image/png' --data-binary abc"},
    {"range_not_satisfiable", "range '99-' is outside of the 8 bytes of the data",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     "curl -s $URL/v1/arrays/$A/data -H 'Range: bytes=99-'"},
    {"expectation_failed", "the only expectation known is '100-continue'",
     "curl -s $URL/v1/sessions --json '{}' -H 'Expect: tea'"},
    {"invalid_request", R"(/nmae: is not a field that is known here; did you mean "name"?)",
     R"(curl -s $URL/v1/sessions --json '{"nmae": "x"}')"},
    {"invalid_query", "parameter 'limit' must be an integer from 1 to 1000, got '0'",
     R"(curl -s "$URL/v1/arrays?limit=0")"},
    {"invalid_mesh", "/devices/0: there is no device 99; this server has devices 0 to 7",
     R"(curl -s $URL/v1/meshes --json '{"axis_names": ["x"], "devices": [99]}')"},
    {"empty_mesh", "mesh axis 'x' has size 0: the mesh is empty and nothing runs on it",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { )"
     R"(return %a : tensor<2xf32> }"}, "arguments": [[1, 2]], "mesh": {"axes": [{"name": "x", "size": )"
     "0}]}}'"},
    {"invalid_spec", "axis 'q' is not an axis of Mesh('x': 2)",
     R"(M=$(curl -s $URL/v1/meshes --json '{"axis_names": ["x"], "devices": [0, 1]}' | jq -r .id); curl -s )"
     R"("$URL/v1/arrays?mesh=$M&spec=q" --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}')"},
    {"invalid_array", "/data: expected a list of 2 (dimension 0 of [2]), got one of 3",
     R"(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2, 3]}')"},
    {"invalid_argument", "the program takes 1 arguments, the request brings 0",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { )"
     R"(return %a : tensor<2xf32> }"}, "arguments": []}')"},
    {"invalid_program", "the module has no function @main", R"(curl -s $URL/v1/programs --json '{"text": ""}')"},
    {"program_syntax", "line 1, column 28: expected an element type, got the end of the text",
     R"(curl -s $URL/v1/programs --json '{"text": "func.func @main(%a: tensor<"}')"},
    {"program_failed", "line 1: index 7 is outside of [0, 4)", ""},
    {"effects_not_supported", "Cannot lower program with effects: `io`",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { )"
     "stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) {has_side_effect = true, mhlo.backend_config = {index = 0 "
     R"(: ui64}} : (tensor<i32>) -> () return %n : tensor<i32> }"}, "arguments": [1], "callbacks": {"0": )"
     R"({"effect": "io"}}}')"},
    {"donation_unusable", "some donated buffers were not usable: float32[2]",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<f32> { %c = )"
     R"(stablehlo.constant dense<1.0> : tensor<f32> return %c : tensor<f32> }"}, "arguments": [{"array": )"
     R"("'$A'"}], "donate": [0], "donation": "strict"}')"},
    {"idempotency_key_reused", "this Idempotency-Key came with another request before; use a new key for a new request",
     R"(run() { curl -s $URL/v1/run -H 'Idempotency-Key: one' --json '{"program": {"text": "func.func @main(%a: )"
     R"(tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"}, "arguments": [['$1', 2]]}'; }; run 1 )"
     ">/dev/null; run 2"},
    {"too_few_devices", "the program requires 64 devices, only 8 devices are available",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { )"
     R"(return %a : tensor<2xf32> }"}, "arguments": [[1, 2]], "in_shardings": [{"parts": [64]}]}')"},
    {"memory_exceeded",
     "the run needs 4000000000000 bytes at its peak, the server gives 12662411264 bytes to all runs together",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main() -> tensor<1000000x1000000xf32> { %c = )"
     "stablehlo.constant dense<1.0> : tensor<f32> %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> "
     R"(tensor<1000000x1000000xf32> return %0 : tensor<1000000x1000000xf32> }"}, "arguments": []}')"},
    {"deadline_exceeded", "the run's time was up",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { %c = )"
     "stablehlo.constant dense<0> : tensor<i32> %o = stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.while(%i "
     "= %c) : tensor<i32> cond { %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "
     "stablehlo.return %p : tensor<i1> } do { %j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j : "
     R"(tensor<i32> } return %0 : tensor<i32> }"}, "arguments": [1000000000], "deadline": 0.05}')"},
    {"budget_exceeded", "the run has executed 1000000000 steps, which is all it may", ""},
    {"nondeterministic_job", "effect 3 of job 'job_...' differs from that of the run before", ""},
    {"unsupported_op", "line 1, column 1: op 'hello' is not supported in a module",
     R"(curl -s $URL/v1/programs --json '{"text": "hello"}')"},
    {"unsupported_dtype", "line 1, column 30: element type 'f6E2M3FN' is not supported",
     R"(curl -s $URL/v1/programs --json '{"text": "func.func @main(%a: tensor<2xf6E2M3FN>) -> tensor<2xf6E2M3FN> { )"
     R"(return %a : tensor<2xf6E2M3FN> }"}')"},
    {"unsupported_type", "line 1, column 27: tensors without a rank are not supported",
     R"(curl -s $URL/v1/programs --json '{"text": "func.func @main(%a: tensor<*xf32>) -> tensor<*xf32> { return %a : )"
     R"(tensor<*xf32> }"}')"},
    {"unsupported_attribute", "shardings have 20 different priorities, at most 16 are supported", ""},
    {"unsupported_custom_call", "line 1, column 55: custom call '@mine' is not known here",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 )"
     R"(= stablehlo.custom_call @mine(%a) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }"}, )"
     R"("arguments": [[1, 2]]}')"},
    {"unsupported_effect", R"(/callbacks/0/effect: "tea" is no effect that is known here; /v1/effects lists them)",
     R"(curl -s $URL/v1/run --json '{"program": {"text": "func.func @main(%n: tensor<i32>) -> tensor<i32> { %u = )"
     "stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) {has_side_effect = true, mhlo.backend_config = {index = 0 "
     R"(: ui64}} : (tensor<i32>) -> tensor<i32> return %u : tensor<i32> }"}, "arguments": [1], "callbacks": {"0": )"
     R"({"effect": "tea"}}}')"},
    {"unsupported_format", "npy: Fortran order is not read; save with numpy.ascontiguousarray", ""},
    {"unsupported_field", "/static: not beside a tree of arguments yet", ""},
    {"unsupported_partition", "a region of 'stablehlo.case' reads a value from outside", ""},
    {"not_implemented",
     R"(equality of arrays says nothing by itself; write an explicit comparison: "mode": "bits" for the same type )"
     R"(and bytes, "placement" for the same type, mesh and sharding)",
     R"(A=$(curl -s $URL/v1/arrays --json '{"dtype": "float32", "shape": [2], "data": [1, 2]}' | jq -r .id); )"
     R"(curl -s $URL/v1/arrays/$A:compare --json '{"array": "'$A'"}')"},
    {"precondition_required", "a job is put where there is none and never changed: send -H 'If-None-Match: *'",
     R"(curl -s -X PUT $URL/v1/jobs/job_00000000-0000-7000-8000-000000000001 --json '{"program": {"text": )"
     R"("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"}, "arguments": [[1, )"
     "2]]}'"},
    {"too_many_requests", "too many connections from this address", ""},
    {"limit_reached",
     "principal 'ann' has 10000 arrays, at most 10000 are allowed; delete some, or ask the operator for a higher limit",
     ""},
    {"queue_full", "too many jobs are waiting", ""},
    {"head_too_large", "the request head is larger than 16384 bytes",
     "curl -s $URL/v1/info -H \"X-Long: $(printf 'a%.0s' $(seq 20000))\""},
    {"draining", "the server is shutting down", ""},
    {"overloaded", "the server is busy", ""},
    {"memory_full", "other requests hold the memory that this one needs", ""},
    {"http_version", "HTTP/1.1 and HTTP/1.0 are spoken here, got HTTP/2.0",
     "exec 3<>/dev/tcp/$(echo ${URL#http://} | tr : /); printf 'GET / HTTP/2.0\\r\\n\\r\\n' >&3; sed '1,/^\\r$/d' <&3"},
    {"disk_full", "the disk is full; nothing was kept", ""},
    {"crashed", "the server ended too often while the job ran", ""},
    {"storage_failed", "storage failed", ""},
    {"internal", "something went wrong on our side; the log has more under this request's id", ""},
};

/// Both tables have the same codes in the same order: a code without an example does not compile.
consteval bool covers_all_codes() {
  if (std::size(kReference) != std::size(core::kErrorTable)) return false;
  for (size_t i = 0; i < std::size(kReference); ++i) {
    if (kReference[i].code != core::kErrorTable[i].word || kReference[i].detail.empty()) return false;
  }
  return true;
}
static_assert(covers_all_codes(), "each row of kErrorTable needs one of kReference, in the same order");

ProblemDocument example_of(const Reference& reference, const core::ErrorRow& row) {
  return {fmt::format("/docs/errors#{}", row.word),
          std::string(row.title),
          status_of(row.kind),
          std::string(reference.detail),
          "req-1a2b3c4d5e6f-1",
          "",
          std::string(row.word),
          std::string(row.hint),
          {},
          {}};
}

// A word that problems carry.
struct ErrorEntry {
  const Reference& reference;
  const core::ErrorRow& row;
};

std::vector<ErrorEntry> entries() {
  std::vector<ErrorEntry> out;
  for (size_t i = 0; i < std::size(kReference); ++i) out.push_back({kReference[i], core::kErrorTable[i]});
  return out;
}

}  // namespace

template <>
const Schema<ErrorEntry>& schema() {
  using Doc = ErrorEntry;
  static const Schema<Doc> kSchema{
      "ErrorCode",
      {{"code", [](const Doc& doc) { return doc.row.word; }},
       {"title", [](const Doc& doc) { return doc.row.title; }},
       {"status", [](const Doc& doc) { return status_of(doc.row.kind); }, {.low = 400, .high = 599}},
       {"hint", [](const Doc& doc) { return doc.row.hint; }},
       {"example", [](const Doc& doc) { return example_of(doc.reference, doc.row); }},
       {"command", [](const Doc& doc) { return unless_empty(doc.reference.command); }}}};
  return kSchema;
}

const SchemaBase& error_schema() { return JsonCodec<Page<ErrorEntry>>::of(); }

std::string error_document() { return to_json(Page<ErrorEntry>{entries(), ""}); }

std::string error_page() {
  std::string out =
      R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><title>meshd: errors</title>)"
      R"(<meta name="viewport" content="width=device-width"><style>body{font:16px/1.5 sans-serif;max-width:60em;)"
      "margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:.7em;overflow:auto;white-space:pre-wrap}"
      "h2{margin-top:2em}</style></head><body><h1>Errors</h1><p>Every refusal is application/problem+json with one of "
      "these "
      "codes. Switch on <code>code</code>; <code>detail</code> and <code>errors</code> say what was wrong in this "
      "request. "
      "Where a command stands, it is answered so; <code>$URL</code> is the server.</p>";
  for (const ErrorEntry& entry : entries()) {
    const auto& [reference, row] = entry;
    out += fmt::format(R"(<h2 id="{0}">{0}</h2><p>{1}. {2}. {3}</p>)", row.word, status_of(row.kind),
                       escaped_html(row.title), escaped_html(row.hint));
    if (!reference.command.empty()) out += fmt::format("<pre>{}</pre>", escaped_html(reference.command));
    out += fmt::format("<pre>{}</pre>", escaped_html(to_json(example_of(reference, row))));
  }
  return out + "</body></html>";
}

}  // namespace meshd::api
