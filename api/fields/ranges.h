// Byte ranges (RFC 9110 chapter 14) of responses whose bytes are known: one range, or everything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/http/http.h"
#include "service/core/error.h"

namespace meshd::api {

/// Bytes [first, first + count) of a representation, always inside of it.
struct ByteRange {
  int64_t first = 0;
  int64_t count = 0;
};

/// The range that a request selects of a representation of `size` bytes; nothing means: send all of it with 200 (no
/// Range, another unit, several ranges, a broken field, another method than GET, or an If-Range that does not match
/// `etag`, which must be strong to match). Throws range_not_satisfiable for one range out of bounds; respond with
/// unsatisfiable(). Example: size 10, "bytes=7-": {7, 3}; "bytes=-4": {6, 4}; "bytes=12-19": throws.
std::optional<ByteRange> requested_range(const Request& request, int64_t size, std::string_view etag);

/// 416 with Content-Range: bytes */size, for what requested_range threw.
Response unsatisfiable(const core::Error& error, const Request& request, int64_t size);

/// 200 or 206 with Accept-Ranges (for the methods that requested_range takes), ETag (if not empty) and Content-Range
/// for a response of a representation of `size` bytes, of which it has `range`, or everything.
void note_range(Response& response, const Request& request, const std::optional<ByteRange>& range, int64_t size,
                std::string_view etag);

/// 200 with all bytes, 206 with the one range that the request selects, or 416 with Content-Range: bytes */size. Sets
/// Accept-Ranges, ETag (if not empty) and Content-Range. `pieces` hold `size` bytes in all.
Response ranged(const Request& request, std::string_view media_type, MemoryPieces pieces, std::string_view etag);

}  // namespace meshd::api
