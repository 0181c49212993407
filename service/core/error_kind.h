// The kind of failure of an error code.
#pragma once

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
  kPrecondition,          ///< an If-Match or similar did not hold
  kTooLarge,              ///< over a size limit
  kUriTooLong,            ///< over the limit of the request line
  kUnsupportedMedia,      ///< a media type this route does not read
  kRange,                 ///< a range outside of the representation
  kExpectation,           ///< an unsupported Expect header
  kInvalid,               ///< well formed, but wrong: a field, a value, a rule
  kPreconditionRequired,  ///< the request must carry a condition
  kTooMany,               ///< quota or rate
  kHeadTooLarge,          ///< request head over its limits
  kNotImplemented,        ///< 501, only where the contract has it
  kUnavailable,           ///< draining or overloaded; try again
  kVersion,               ///< HTTP version not spoken
  kDiskFull,              ///< no space left to keep an acknowledgement
  kInternal,              ///< our fault
};

}  // namespace meshd::core
