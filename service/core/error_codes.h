// The one table of error codes. A code is a stable machine word that clients switch on; its kind decides the HTTP
// status (api/http/problem.cpp maps kinds, nothing else does). To add a code, add a row here;
// api/routes/documents/error_reference.cpp asks for its hint.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace meshd::core {

/// What sort of failure it is, in words no protocol owns. The HTTP edge maps each kind to one status.
enum class ErrorKind {
  kMalformed,             ///< the bytes are not what they claim to be
  kUnauthorized,          ///< no or wrong credentials
  kForbidden,             ///< known, but not allowed
  kNotFound,              ///< no such thing for this principal
  kMethodNotAllowed,      ///< the resource exists, the verb does not
  kNotAcceptable,         ///< none of the forms the client takes
  kTimeout,               ///< the client was too slow
  kConflict,              ///< right request, wrong state
  kGone,                  ///< was here, is not any more
  kPrecondition,          ///< an If-Match or the like did not hold
  kTooLarge,              ///< over a size limit
  kUriTooLong,            ///< over the limit of the request line
  kUnsupportedMedia,      ///< a media type this route does not read
  kRange,                 ///< a range outside of the representation
  kExpectation,           ///< an Expect header we do not know
  kInvalid,               ///< well formed, but wrong: a field, a value, a rule
  kPreconditionRequired,  ///< the request must carry a condition
  kTooMany,               ///< quota or rate
  kHeadTooLarge,          ///< request head over its limits
  kNotImplemented,        ///< 501, only where the contract says so
  kUnavailable,           ///< draining or overloaded; try again
  kVersion,               ///< HTTP version not spoken
  kDiskFull,              ///< no space left to keep an acknowledgement
  kInternal,              ///< our fault
};

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
    {"http_version", ErrorKind::kVersion, "This version of HTTP is not spoken"},
    {"disk_full", ErrorKind::kDiskFull, "The disk is full"},
    {"crashed", ErrorKind::kInternal, "The server ended too often while the job ran"},
    {"storage_failed", ErrorKind::kInternal, "Storage failed"},
    {"internal", ErrorKind::kInternal, "Something went wrong on our side"},
};

/// A reference to one row, made from the row's word at compile time: an unknown word does not compile.
class ErrorCode {
 public:
  // By number, not by a pointer that is compared with null: the latter is no constant expression under
  // -fsanitize=undefined.
  consteval ErrorCode(const char* word) : row_(kErrorTable + number_of(word)) {}

  [[nodiscard]] constexpr std::string_view word() const { return row_->word; }
  [[nodiscard]] constexpr ErrorKind kind() const { return row_->kind; }
  [[nodiscard]] constexpr std::string_view title() const { return row_->title; }
  friend constexpr bool operator==(ErrorCode a, ErrorCode b) { return a.row_ == b.row_; }

 private:
  constexpr explicit ErrorCode(const ErrorRow* row) : row_(row) {}
  friend ErrorCode error_code_from_word(std::string_view word);

  static consteval size_t number_of(std::string_view word) {
    for (size_t i = 0; i < std::size(kErrorTable); ++i) {
      if (kErrorTable[i].word == word) return i;
    }
    throw "no such error code: add a row to kErrorTable";
  }

  const ErrorRow* row_;
};

/// The row with this word, or `internal` when there is none (a code read back from storage that a newer version wrote).
ErrorCode error_code_from_word(std::string_view word);

}  // namespace meshd::core
