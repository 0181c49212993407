// The one table of error codes. A code is a stable machine word that clients switch on; its kind decides the HTTP
// status (api/http/problem.cpp maps kinds, nothing else does). To add a code, add a row here;
// api/routes/documents/error_reference.cpp then needs its hint. Code that throws needs error.h alone: a code is its
// word, and only the conversion to a response reads the table.
#pragma once

#include <string_view>

#include "service/core/error.h"
#include "service/core/error_kind.h"

namespace meshd::core {

/// One row: the word, what kind it is, and a title fit for a heading.
struct ErrorRow {
  std::string_view word;
  ErrorKind kind;
  std::string_view title;
};

inline constexpr ErrorRow kErrorTable[] = {
    {"malformed_request", ErrorKind::kMalformed, "The request cannot be read"},
    {"malformed_json", ErrorKind::kMalformed, "The body is not JSON that can be read"},
    {"malformed_body", ErrorKind::kMalformed, "The body is not what its type says"},
    {"digest_mismatch", ErrorKind::kMalformed, "The body does not have the digest it was announced with"},
    {"unauthorized", ErrorKind::kUnauthorized, "Credentials are missing or wrong"},
    {"forbidden", ErrorKind::kForbidden, "Not allowed"},
    {"cross_site", ErrorKind::kForbidden, "The request comes from a page of another site"},
    {"host_not_allowed", ErrorKind::kForbidden, "The server does not go by this name"},
    {"not_found", ErrorKind::kNotFound, "There is no such resource"},
    {"method_not_allowed", ErrorKind::kMethodNotAllowed, "The resource does not know this method"},
    {"not_acceptable", ErrorKind::kNotAcceptable, "No form of the answer is acceptable"},
    {"request_timeout", ErrorKind::kTimeout, "The request took too long to arrive"},
    {"conflict", ErrorKind::kConflict, "The state does not allow it"},
    {"mesh_immutable", ErrorKind::kConflict, "A mesh cannot be changed"},
    {"device_mismatch", ErrorKind::kConflict, "Devices do not agree"},
    {"sharding_mismatch", ErrorKind::kConflict, "Shardings do not agree"},
    {"array_in_use", ErrorKind::kConflict, "The array is reserved by another job"},
    {"array_donated", ErrorKind::kConflict, "The array was donated"},
    {"idempotency_in_progress", ErrorKind::kConflict, "The first request with this key is still running"},
    {"session_closed", ErrorKind::kConflict, "The session is closed"},
    {"session_halted", ErrorKind::kConflict, "The session is halted"},
    {"job_finished", ErrorKind::kConflict, "The job is over"},
    {"cancelled", ErrorKind::kConflict, "The job was cancelled"},
    {"deleted_or_donated", ErrorKind::kGone, "The data is gone"},
    {"array_lost", ErrorKind::kGone, "The data was in memory only and is lost"},
    {"precondition_failed", ErrorKind::kPrecondition, "A condition of the request does not hold"},
    {"body_too_large", ErrorKind::kTooLarge, "The body is too large"},
    {"quota_exceeded", ErrorKind::kTooLarge, "The data does not fit the quota"},
    {"uri_too_long", ErrorKind::kUriTooLong, "The request target is too long"},
    {"unsupported_media_type", ErrorKind::kUnsupportedMedia, "This media type is not read here"},
    {"range_not_satisfiable", ErrorKind::kRange, "The range is outside of the data"},
    {"expectation_failed", ErrorKind::kExpectation, "The expectation is not known"},
    {"invalid_request", ErrorKind::kInvalid, "Fields of the request are wrong"},
    {"invalid_query", ErrorKind::kInvalid, "Query parameters are wrong"},
    {"invalid_mesh", ErrorKind::kInvalid, "The mesh is wrong"},
    {"empty_mesh", ErrorKind::kInvalid, "Nothing runs on an empty mesh"},
    {"invalid_spec", ErrorKind::kInvalid, "The sharding is wrong"},
    {"invalid_array", ErrorKind::kInvalid, "The array is wrong"},
    {"invalid_argument", ErrorKind::kInvalid, "An argument does not fit the program"},
    {"invalid_program", ErrorKind::kInvalid, "The program is wrong"},
    {"program_syntax", ErrorKind::kInvalid, "The program text cannot be read"},
    {"program_failed", ErrorKind::kInvalid, "The program failed while it ran"},
    {"effects_not_supported", ErrorKind::kInvalid, "The program's effects are not possible here"},
    {"donation_unusable", ErrorKind::kInvalid, "A donated argument cannot be used"},
    {"idempotency_key_reused", ErrorKind::kInvalid, "The key was used with another request"},
    {"too_few_devices", ErrorKind::kInvalid, "There are not enough devices"},
    {"memory_exceeded", ErrorKind::kInvalid, "The run does not fit in memory"},
    {"deadline_exceeded", ErrorKind::kInvalid, "The job's time was up"},
    {"budget_exceeded", ErrorKind::kInvalid, "The job's budget was used up"},
    {"nondeterministic_job", ErrorKind::kInvalid, "A second run of the job gave other effects"},
    {"unsupported_op", ErrorKind::kInvalid, "The program uses an op that is not supported"},
    {"unsupported_dtype", ErrorKind::kInvalid, "The element type is not supported"},
    {"unsupported_type", ErrorKind::kInvalid, "The type is not supported"},
    {"unsupported_attribute", ErrorKind::kInvalid, "The program uses an annotation that is not supported"},
    {"unsupported_custom_call", ErrorKind::kInvalid, "The custom call is not known"},
    {"unsupported_effect", ErrorKind::kInvalid, "The effect is not supported"},
    {"unsupported_format", ErrorKind::kInvalid, "The format is not supported"},
    {"unsupported_field", ErrorKind::kInvalid, "The field is not supported"},
    {"unsupported_partition", ErrorKind::kInvalid, "The program cannot be partitioned this way"},
    {"not_implemented", ErrorKind::kNotImplemented, "Not implemented"},
    {"precondition_required", ErrorKind::kPreconditionRequired, "The request must carry a condition"},
    {"too_many_requests", ErrorKind::kTooMany, "Too many requests"},
    {"limit_reached", ErrorKind::kTooMany, "A limit of the principal is reached"},
    {"queue_full", ErrorKind::kTooMany, "Too many jobs are waiting"},
    {"head_too_large", ErrorKind::kHeadTooLarge, "The request's head is too large"},
    {"draining", ErrorKind::kUnavailable, "The server is shutting down"},
    {"overloaded", ErrorKind::kUnavailable, "The server is busy"},
    {"memory_full", ErrorKind::kUnavailable, "The memory for this is in use"},
    {"http_version", ErrorKind::kVersion, "This version of HTTP is not spoken"},
    {"disk_full", ErrorKind::kDiskFull, "The disk is full"},
    {"crashed", ErrorKind::kInternal, "The server ended too often while the job ran"},
    {"storage_failed", ErrorKind::kInternal, "Storage failed"},
    {"internal", ErrorKind::kInternal, "Something went wrong on our side"},
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
