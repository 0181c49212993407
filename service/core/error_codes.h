// The one table of error codes. A code is a stable machine word that clients switch on; its kind decides the HTTP
// status (api/http/problem.cpp maps kinds, nothing else does). To add a code, add a row here;
// api/routes/documents/error_reference.cpp then needs its example. Code that throws needs error.h alone: a code is its
// word, and only the conversion to a response reads the table.
#pragma once

#include <string_view>

#include "service/core/error.h"
#include "service/core/error_kind.h"

namespace meshd::core {

/// One row: the word, what kind it is, a title fit for a heading, and a hint that problems carry.
struct ErrorRow {
  std::string_view word;
  ErrorKind kind;
  std::string_view title;
  std::string_view hint;  ///< how a client or operator mends it, whatever the detail is
};

inline constexpr ErrorRow kErrorTable[] = {
    {"malformed_request", ErrorKind::kMalformed, "The request cannot be read",
     "Send what HTTP allows: escapes in the address, a plain head, a body only where one is taken."},
    {"malformed_json", ErrorKind::kMalformed, "The body is not JSON that can be read",
     "Look at the line and column in detail; quote the body for the shell with single quotes."},
    {"malformed_body", ErrorKind::kMalformed, "The body is not what its type says",
     "Make the body, its Content-Type and the query agree; send all of it."},
    {"upload_completed", ErrorKind::kMalformed, "The upload is complete",
     "Nothing more can be appended: GET of the upload says where to find what it made."},
    {"upload_length_mismatch", ErrorKind::kMalformed, "The upload's lengths do not agree",
     "Say the same length in each request, and send as many bytes."},
    {"digest_mismatch", ErrorKind::kMalformed, "The body does not have the digest it was announced with",
     "The body changed on its way, or the digest is of something else: send both again."},
    {"unauthorized", ErrorKind::kUnauthorized, "Credentials are missing or wrong",
     "Send a token of the server's file as Authorization: Bearer, or as X-Api-Key."},
    {"forbidden", ErrorKind::kForbidden, "Not allowed",
     "Ask with a token that may do it (GET /v1/me says what this one may); leave as_process away."},
    {"cross_site", ErrorKind::kForbidden, "The request comes from a page of another site",
     "Call the server from a page that it served itself, or have its operator start it with --cors-origin."},
    {"host_not_allowed", ErrorKind::kForbidden, "The server does not go by this name",
     "Use the address that the server listens on, or have its operator name the host with --allowed-host."},
    {"not_found", ErrorKind::kNotFound, "There is no such resource",
     "Look at the id and the path; ids of other tokens and deleted things are not found either."},
    {"method_not_allowed", ErrorKind::kMethodNotAllowed, "The resource does not know this method",
     "Use a method of the Allow field."},
    {"not_acceptable", ErrorKind::kNotAcceptable, "No form of the answer is acceptable",
     "Ask for a type that detail lists, or use ?format=."},
    {"request_timeout", ErrorKind::kTimeout, "The request took too long to arrive",
     "Send the request without long pauses: the head within 10 s, bodies with 1 KiB a second."},
    {"conflict", ErrorKind::kConflict, "The state does not allow it",
     "Read the resource again: it is not in the state that this request needs."},
    {"name_taken", ErrorKind::kConflict, "Another array has the name",
     "Take another name, delete that array, or replace it: PUT /v1/arrays/by-name/NAME/data, with If-Match for another "
     "type."},
    {"upload_in_use", ErrorKind::kConflict, "The upload is being appended to",
     "Send one request at a time; HEAD of the upload ends one whose connection was lost, and says where to go on."},
    {"upload_offset_mismatch", ErrorKind::kConflict, "The upload is elsewhere",
     "Go on at the offset that the field Upload-Offset says."},
    {"mesh_immutable", ErrorKind::kConflict, "A mesh cannot be changed",
     "Post the other mesh; it gets an id of its own."},
    {"device_mismatch", ErrorKind::kConflict, "Devices do not agree",
     R"(Name the mesh that the arrays are on, reshard them, or send "reshard": true.)"},
    {"sharding_mismatch", ErrorKind::kConflict, "Shardings do not agree",
     R"(Reshard the array (POST :reshard), or send "reshard": true.)"},
    {"array_in_use", ErrorKind::kConflict, "The array is reserved by another job",
     "Wait for that job, or give each job that donates an array of its own."},
    {"array_donated", ErrorKind::kConflict, "The array was donated",
     "Use the result that took its place, or upload the data again."},
    {"idempotency_in_progress", ErrorKind::kConflict, "The first request with this key is still running",
     "Read the job in the Location field; do not send the request again."},
    {"session_closed", ErrorKind::kConflict, "The session is closed", "Open another session."},
    {"session_halted", ErrorKind::kConflict, "The session is halted",
     "Read the job that failed (halted_by of the session is its number), then POST /v1/sessions/{id}:resume."},
    {"model_not_loaded", ErrorKind::kConflict, "The model is not loaded",
     "POST /v2/repository/models/NAME/load loads it; POST /v2/repository/index says why one is unavailable."},
    {"job_finished", ErrorKind::kConflict, "The job is over", "Nobody waits for the reply any more: read the job."},
    {"cancelled", ErrorKind::kConflict, "The job was cancelled",
     "Somebody deleted the job; send the request again if it was not meant."},
    {"dependency_failed", ErrorKind::kConflict, "A job that was to make an argument did not",
     "Read the job that detail names, mend it, and send both again."},
    {"deleted_or_donated", ErrorKind::kGone, "The data is gone",
     "Read what detail names: another array, or the results of a job."},
    {"array_lost", ErrorKind::kGone, "The data was in memory only and is lost",
     "Upload it again, with durability=durable where it has to outlive the server."},
    {"precondition_failed", ErrorKind::kPrecondition, "A condition of the request does not hold",
     "Read the resource again, look at what changed, and send its ETag."},
    {"body_too_large", ErrorKind::kTooLarge, "The body is too large",
     "Send less; large values go to POST /v1/arrays as bytes and are named by id."},
    {"quota_exceeded", ErrorKind::kTooLarge, "The data does not fit the quota",
     "Make the array smaller, split it into several, or ask the operator for a larger --quota."},
    {"uri_too_long", ErrorKind::kUriTooLong, "The request target is too long", "Put long values into the body."},
    {"unsupported_media_type", ErrorKind::kUnsupportedMedia, "This media type is not read here",
     "Send a Content-Type that detail lists, gzip, deflate or zstd as Content-Encoding."},
    {"range_not_satisfiable", ErrorKind::kRange, "The range is outside of the data",
     "Ask for bytes that are there: Content-Range has the size."},
    {"expectation_failed", ErrorKind::kExpectation, "The expectation is not known", "Leave the Expect field away."},
    {"invalid_request", ErrorKind::kInvalid, "Fields of the request are wrong",
     "Mend the fields that errors points at; the contract lists those that are known."},
    {"invalid_query", ErrorKind::kInvalid, "Query parameters are wrong", "Mend the parameter that detail names."},
    {"invalid_mesh", ErrorKind::kInvalid, "The mesh is wrong",
     "Give each axis a name of its own and each device once; GET /v1/devices lists them."},
    {"empty_mesh", ErrorKind::kInvalid, "Nothing runs on an empty mesh",
     "A mesh with an axis of size 0 can be stored and asked about; run on a mesh whose sizes are all at least 1."},
    {"invalid_spec", ErrorKind::kInvalid, "The sharding is wrong",
     "Name axes of the mesh, each once, and no more dimensions than the array has."},
    {"invalid_array", ErrorKind::kInvalid, "The array is wrong", "Make data, dtype and shape agree."},
    {"invalid_argument", ErrorKind::kInvalid, "An argument does not fit the program",
     "Bring the arguments of @main in its order, tokens left out, with its types and shapes."},
    {"invalid_program", ErrorKind::kInvalid, "The program is wrong", "Mend the text at the line that errors names."},
    {"program_syntax", ErrorKind::kInvalid, "The program text cannot be read",
     "Mend the text at the line and column that errors names. What is read: StableHLO, as "
     "jax.jit(f).lower(x).as_text() "
     R"(prints it, and, with "format": "numpy", functions in NumPy syntax (/docs/guides/from-numpy).)"},
    {"program_failed", ErrorKind::kInvalid, "The program failed while it ran",
     "The program itself failed while it ran: look at the line in detail."},
    {"effects_not_supported", ErrorKind::kInvalid, "The program's effects are not possible here",
     "Bind the callback to a kind of effect that GET /v1/effects shows as lowerable."},
    {"donation_unusable", ErrorKind::kInvalid, "A donated argument cannot be used",
     R"(Donate only what has a result of the same type and sharding, or send "donation": "warn".)"},
    {"idempotency_key_reused", ErrorKind::kInvalid, "The key was used with another request",
     "Use a new key for each new request, the same one only to repeat it."},
    {"too_few_devices", ErrorKind::kInvalid, "There are not enough devices",
     "Use a smaller mesh, or start the server with more --devices."},
    {"memory_exceeded", ErrorKind::kInvalid, "The run does not fit in memory",
     "Make the run smaller: shard its values over more of the mesh, use smaller types; :explain tells the peak."},
    {"deadline_exceeded", ErrorKind::kInvalid, "The job's time was up", "Give a later deadline, or a smaller program."},
    {"budget_exceeded", ErrorKind::kInvalid, "The job's budget was used up",
     "Make the loop or the values smaller, or ask the operator for a larger --step-budget, --operation-budget or "
     "--byte-budget: the message says which."},
    {"nondeterministic_job", ErrorKind::kInvalid, "A second run of the job gave other effects",
     "A job that runs again after a restart must do the same: give it the same answers."},
    {"unsupported_op", ErrorKind::kInvalid, "The program uses an op that is not supported",
     "Write it with ops that GET /v1/ops shows as supported."},
    {"unsupported_dtype", ErrorKind::kInvalid, "The element type is not supported",
     "Use an element type that GET /v1/ops lists for the op."},
    {"unsupported_type", ErrorKind::kInvalid, "The type is not supported",
     "Use dense tensors of known types; NumPy syntax: see /docs/guides/from-numpy."},
    {"unsupported_attribute", ErrorKind::kInvalid, "The program uses an annotation that is not supported",
     "Leave the annotation away that detail names."},
    {"unsupported_custom_call", ErrorKind::kInvalid, "The custom call is not known",
     "Use ops in its place; GET /v1/ops has the custom calls that are known."},
    {"unsupported_effect", ErrorKind::kInvalid, "The effect is not supported",
     "Use a kind that GET /v1/effects lists."},
    {"unsupported_format", ErrorKind::kInvalid, "The format is not supported",
     "Convert the data to a form that detail names."},
    {"unsupported_field", ErrorKind::kInvalid, "The field is not supported", "Leave the field away that detail names."},
    {"unsupported_extension", ErrorKind::kInvalid, "This extension of the inference protocol is not supported",
     "Leave it away: GET /v2 lists the extensions that are supported."},
    {"unsupported_partition", ErrorKind::kInvalid, "The program cannot be partitioned this way",
     "Run the program on one device, or write the part that detail names otherwise."},
    {"not_implemented", ErrorKind::kNotImplemented, "Not implemented", "Do what detail proposes."},
    {"precondition_required", ErrorKind::kPreconditionRequired, "The request must carry a condition",
     "Send the condition that detail names."},
    {"too_many_requests", ErrorKind::kTooMany, "Too many requests",
     "Keep connections and use them again; wait for Retry-After."},
    {"limit_reached", ErrorKind::kTooMany, "A limit of the principal is reached",
     "Delete what is no longer needed, or ask the operator for a higher limit; GET /v1/me shows all of them."},
    {"queue_full", ErrorKind::kTooMany, "Too many jobs are waiting",
     "Wait for Retry-After; RateLimit tells how many more may wait."},
    {"head_too_large", ErrorKind::kHeadTooLarge, "The request's head is too large", "Send fewer and shorter fields."},
    {"starting", ErrorKind::kUnavailable, "The server is starting",
     "Send it again after Retry-After; /readyz tells when the server is ready."},
    {"draining", ErrorKind::kUnavailable, "The server is shutting down",
     "Send it to another server, or again after Retry-After."},
    {"queue_timeout", ErrorKind::kUnavailable, "The request waited too long in its model's queue",
     "Send it again after Retry-After, with a longer timeout, or let the model have more instances."},
    {"overloaded", ErrorKind::kUnavailable, "The server is busy", "Send it again after Retry-After."},
    {"memory_full", ErrorKind::kUnavailable, "The memory for this is in use",
     "Send it again after Retry-After; ask for smaller pages (limit=), and send large data as raw bytes or .npy."},
    {"http_version", ErrorKind::kVersion, "This version of HTTP is not spoken", "Speak HTTP/1.1."},
    {"disk_full", ErrorKind::kDiskFull, "The disk is full",
     "Nothing was acknowledged and lost: free space on the server and send it again."},
    {"crashed", ErrorKind::kInternal, "The server ended too often while the job ran",
     "The job is not tried again; look into the server's log, then send it with other data."},
    {"ranks_disagree", ErrorKind::kInternal, "The server's processes made different plans",
     "Tell the operator: all ranks have to be the same build on processors of one kind."},
    {"storage_failed", ErrorKind::kInternal, "Storage failed", "Look into the server's log under the request's id."},
    {"internal", ErrorKind::kInternal, "Something went wrong on our side",
     "Report it with the request's id; sending it again may help."},
};

/// The row of a code. A code whose word has no row is a defect of ours and gets the row of `internal`;
/// tests/source/error_words_test.py looks up the word of every throw.
constexpr const ErrorRow& row_of(ErrorCode code) {
  const ErrorRow* internal = nullptr;
  for (const ErrorRow& row : kErrorTable) {
    if (row.word == code.word()) return row;
    if (row.word == "internal") internal = &row;
  }
  return *internal;
}

}  // namespace meshd::core
