#include "api/routes/arrays/array_stream.h"

#include <algorithm>
#include <optional>

#include "api/http/digests.h"
#include "api/http/ranges.h"

namespace meshd::api {
namespace {

// Responses of up to so many slices of memory are sent without a copy.
constexpr size_t kMostPieces = 4096;

}  // namespace

void ArrayStream::add(std::string text) {
  total_ = core::checked_add(total_, static_cast<int64_t>(text.size()));
  segments_.emplace_back(std::make_shared<const std::string>(std::move(text)));
}

void ArrayStream::add(std::shared_ptr<arrays::GatherReader> region) {
  total_ = core::checked_add(total_, region->total_bytes());
  segments_.emplace_back(std::move(region));
}

std::shared_ptr<std::vector<std::byte>> dense_bytes(arrays::GatherReader& region) {
  auto buffer = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(region.total_bytes()));
  region.read(*buffer);
  return buffer;
}

Response ArrayStream::respond(const Request& request, std::string_view media_type, const std::string& etag) && {
  struct Keep {
    std::vector<Segment> segments;
    std::vector<std::shared_ptr<std::vector<std::byte>>> copies;
  };
  auto keep = std::make_shared<Keep>();
  std::vector<std::span<const std::byte>> pieces;
  // A range or a digest costs a copy where the bytes are in too many slices.
  const bool needs_bytes = request.headers.has("Range") || request.headers.has("Want-Repr-Digest") ||
                           request.headers.has("Want-Content-Digest");
  bool fits = true;
  for (const Segment& segment : segments_) {
    if (const auto* text = std::get_if<std::shared_ptr<const std::string>>(&segment)) {
      if (!(*text)->empty()) pieces.push_back(std::as_bytes(std::span<const char>(**text)));
      continue;
    }
    arrays::GatherReader& region = *std::get<std::shared_ptr<arrays::GatherReader>>(segment);
    const auto found = region.pieces(kMostPieces - std::min(kMostPieces, pieces.size()));
    if (found) {
      pieces.insert(pieces.end(), found->begin(), found->end());
    } else if (needs_bytes) {
      keep->copies.push_back(dense_bytes(region));
      pieces.emplace_back(*keep->copies.back());
    } else {
      fits = false;
      break;
    }
  }
  keep->segments = std::move(segments_);
  if (fits) {
    const std::string digest = wanted_digest(request.headers, pieces);
    Response response = ranged(request, media_type, {std::move(pieces), keep}, etag);
    if (!digest.empty() && response.status < 300) response.headers.set("Repr-Digest", digest);
    return response;
  }
  size_t next = 0, sent = 0;
  Response response =
      generated(200, media_type,
                {total_, [keep, next, sent](std::span<std::byte> out) mutable {
                   size_t filled = 0;
                   while (filled < out.size() && next < keep->segments.size()) {
                     const std::span<std::byte> rest = out.subspan(filled);
                     size_t count = 0;
                     if (const auto* text = std::get_if<std::shared_ptr<const std::string>>(&keep->segments[next])) {
                       count = std::min(rest.size(), (*text)->size() - sent);
                       std::copy_n(reinterpret_cast<const std::byte*>((*text)->data()) + sent, count, rest.data());
                       sent += count;
                     } else {
                       count = std::get<std::shared_ptr<arrays::GatherReader>>(keep->segments[next])->read(rest);
                     }
                     filled += count;
                     if (count == 0) {
                       ++next;
                       sent = 0;
                     }
                   }
                   return filled;
                 }});
  if (!etag.empty()) response.headers.set("ETag", etag);
  return response;
}

}  // namespace meshd::api
