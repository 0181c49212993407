// Request heads, read strictly (RFC 9112): what is not plainly right is refused before anything else sees it. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

struct HeadLimits {
  size_t bytes = 16 * 1024;
  size_t target_bytes = 8 * 1024;
  int fields = 100;
};

/// How the body after a head is delimited.
enum class Framing { kNone, kLength, kChunked };

/// A head that passed. Fields with an underscore in their name are not in it: gateways confuse them with others.
struct Head {
  std::string method;
  std::string target;  ///< as sent
  std::string path;    ///< raw; "*" for OPTIONS *
  std::string raw_query;
  std::string authority;  ///< of Host, which the absolute form repeats; empty for HTTP/1.0 that names none
  int minor_version = 1;
  Headers headers;
  Framing framing = Framing::kNone;
  int64_t content_length = 0;  ///< of kLength
  bool expect_continue = false;
  bool keep_alive = true;
};

/// Looks for the end of a head in bytes that arrive piece by piece, without looking at any byte twice.
class HeadScanner {
 public:
  explicit HeadScanner(const HeadLimits& limits) : limits_(limits) {}

  /// `bytes` is everything since the start of the head, more than at the last call. Returns the size of the head with
  /// its empty line, or nothing if it has not ended. Throws core::Error as soon as it cannot become a head any more:
  /// malformed_request (a bare LF, a first byte that starts no method), uri_too_long, head_too_large.
  std::optional<size_t> find_end(std::string_view bytes);
  void reset() { *this = HeadScanner(limits_); }

 private:
  HeadLimits limits_;
  size_t scanned_ = 0;
  size_t line_start_ = 0;
  int lines_ = 0;
};

/// Parses a complete head, up to and with its empty line. Throws core::Error: malformed_request, uri_too_long,
/// head_too_large, http_version, expectation_failed.
Head parse_head(std::string_view bytes, const HeadLimits& limits);

}  // namespace meshd::api
