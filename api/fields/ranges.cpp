#include "api/fields/ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "api/http/characters.h"
#include "api/http/problem.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

bool has_ranges(const Request& request) { return request.method == "GET" || request.method == "HEAD"; }

/// A position of a range: digits only; values beyond int64 count as INT64_MAX, which is past every end.
std::optional<int64_t> position(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  int64_t out = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), out).ec != std::errc()) return INT64_MAX;
  return out;
}

}  // namespace

std::optional<ByteRange> requested_range(const Request& request, int64_t size, std::string_view etag) {
  const std::string header = request.headers.joined("Range");
  if (header.empty() || !has_ranges(request)) return std::nullopt;
  if (const auto condition = request.headers.get("If-Range")) {
    const bool strong = !etag.empty() && !etag.starts_with("W/");
    if (!strong || *condition != etag) return std::nullopt;
  }
  std::string_view set = header;
  const size_t equals = set.find('=');
  if (equals == std::string_view::npos || !equal_ignoring_case(set.substr(0, equals), "bytes")) return std::nullopt;
  set.remove_prefix(equals + 1);
  std::string_view range;
  if (!next_list_element(set, range)) return std::nullopt;
  if (std::string_view another; next_list_element(set, another)) return std::nullopt;

  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first_text = range.substr(0, dash);
  const std::string_view last_text = range.substr(dash + 1);
  const std::optional<int64_t> first = position(first_text);
  const std::optional<int64_t> last = position(last_text);
  if ((!first && !first_text.empty()) || (!last && !last_text.empty()) || (!first && !last)) return std::nullopt;
  if (first && last && *last < *first) return std::nullopt;

  // RFC 9110 14.1.2: "-n" is the last n bytes; a last position past the end is the end.
  if (!first) {
    if (*last > 0 && size > 0) return ByteRange{size - std::min(*last, size), std::min(*last, size)};
  } else if (*first < size) {
    return ByteRange{*first, std::min(last.value_or(size - 1), size - 1) - *first + 1};
  }
  throw core::Error("range_not_satisfiable",
                    fmt::format("range '{}' is outside of the {} bytes of the data", range, size));
}

Response unsatisfiable(const core::Error& error, const Request& request, int64_t size) {
  return problem(error, request).with("Content-Range", fmt::format("bytes */{}", size));
}

void note_range(Response& response, const Request& request, const std::optional<ByteRange>& range, int64_t size,
                std::string_view etag) {
  if (has_ranges(request)) response.headers.add("Accept-Ranges", "bytes");
  if (!etag.empty()) response.headers.add("ETag", etag);
  if (!range) return;
  response.status = 206;
  response.headers.add("Content-Range",
                       fmt::format("bytes {}-{}/{}", range->first, range->first + range->count - 1, size));
}

Response ranged(const Request& request, std::string_view media_type, MemoryPieces pieces, std::string_view etag) {
  int64_t size = 0;
  for (const auto& piece : pieces.pieces) size += static_cast<int64_t>(piece.size());
  std::optional<ByteRange> range;
  try {
    range = requested_range(request, size, etag);
  } catch (const core::Error& error) {
    return unsatisfiable(error, request, size);
  }
  if (range) {
    MemoryPieces part{{}, std::move(pieces.keep), pieces.made_bytes};
    int64_t skip = range->first;
    int64_t left = range->count;
    for (const auto& piece : pieces.pieces) {
      const auto piece_size = static_cast<int64_t>(piece.size());
      const int64_t take = std::clamp<int64_t>(piece_size - skip, 0, left);
      if (take > 0) part.pieces.push_back(piece.subspan(static_cast<size_t>(skip), static_cast<size_t>(take)));
      skip = std::max<int64_t>(skip - piece_size, 0);
      left -= take;
    }
    pieces = std::move(part);
  }
  Response response = memory(200, media_type, std::move(pieces));
  note_range(response, request, range, size, etag);
  return response;
}

}  // namespace meshd::api
