#include "api/routes/arrays/array_stream.h"

#include <algorithm>
#include <optional>

#include "api/fields/digests.h"
#include "api/fields/ranges.h"

namespace meshd::api {
namespace {

// Responses of up to so many slices of memory are sent without a copy.
constexpr size_t kMostPieces = 4096;
constexpr size_t kDigestPiece = size_t{256} << 10;
constexpr int64_t kFirstPiece = 64 << 10;

}  // namespace

void ArrayStream::add(std::string text) {
  total_ = core::checked_add(total_, static_cast<int64_t>(text.size()));
  segments_.emplace_back(std::make_shared<const std::string>(std::move(text)));
}

void ArrayStream::add(std::shared_ptr<arrays::GatherReader> region) {
  total_ = core::checked_add(total_, region->total_bytes());
  segments_.emplace_back(std::move(region));
}

PageMemory page_memory(Services& services) {
  return std::make_shared<core::MemoryReservation>(services.memory, core::MemoryAccount::kDownloads);
}

std::shared_ptr<arrays::GatherReader> counted_reader(const PageMemory& memory,
                                                     std::shared_ptr<const sharding::Layout> layout,
                                                     tensor::DType dtype, arrays::ReadableShards shards,
                                                     std::vector<arrays::Slice> slices) {
  struct Counted {
    PageMemory memory;
    arrays::GatherReader reader;
  };
  auto counted = std::make_shared<Counted>(
      Counted{memory, {std::move(layout), tensor::size_bytes(dtype), std::move(shards), std::move(slices)}});
  const int64_t more = counted->reader.page_memory() - memory->bytes();
  if (more > 0) memory->grow(more);
  return {counted, &counted->reader};
}

std::shared_ptr<std::vector<std::byte>> dense_bytes(arrays::GatherReader& region) {
  auto buffer = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(region.total_bytes()));
  region.read(*buffer);
  return buffer;
}

// The segments as one run of bytes, read from any place on.
class ArrayStream::Source {
 public:
  explicit Source(std::vector<Segment> segments) : segments_(std::move(segments)) {}

  // BodySource::pull.
  size_t read(std::span<std::byte> out) {
    size_t filled = 0;
    while (filled < out.size() && next_ < segments_.size()) {
      const std::span<std::byte> rest = out.subspan(filled);
      size_t count = 0;
      if (const auto* text = std::get_if<std::shared_ptr<const std::string>>(&segments_[next_])) {
        count = std::min(rest.size(), (*text)->size() - in_text_);
        std::copy_n(reinterpret_cast<const std::byte*>((*text)->data()) + in_text_, count, rest.data());
        in_text_ += count;
      } else {
        count = std::get<std::shared_ptr<arrays::GatherReader>>(segments_[next_])->read(rest);
      }
      filled += count;
      if (count > 0) continue;
      ++next_;
      in_text_ = 0;
    }
    return filled;
  }

  void seek(int64_t byte) {
    next_ = segments_.size();
    in_text_ = 0;
    for (size_t i = segments_.size(); i-- > 0;) {
      if (const auto* region = std::get_if<std::shared_ptr<arrays::GatherReader>>(&segments_[i])) (*region)->seek(0);
    }
    for (size_t i = 0; i < segments_.size(); ++i) {
      const int64_t size = size_of(segments_[i]);
      if (byte >= size) {
        byte -= size;
        continue;
      }
      next_ = i;
      if (const auto* region = std::get_if<std::shared_ptr<arrays::GatherReader>>(&segments_[i])) {
        (*region)->seek(byte);
      } else {
        in_text_ = static_cast<size_t>(byte);
      }
      return;
    }
  }

  // As seek; and what is sent first is read, so that a page that is damaged there is a problem document.
  void look(int64_t byte, int64_t count) {
    seek(byte);
    std::vector<std::byte> piece(static_cast<size_t>(std::min<int64_t>(count, kFirstPiece)));
    static_cast<void>(read(piece));
    seek(byte);
  }

  // "sha-256=:...:" of so many bytes from `byte` on.
  std::string digest(int64_t byte, int64_t count) {
    seek(byte);
    core::Sha256 seen;
    std::vector<std::byte> piece(kDigestPiece);
    while (count > 0) {
      const auto most = static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(piece.size())));
      const size_t got = read(std::span(piece).first(most));
      if (got == 0) break;
      seen.update(std::span<const std::byte>(piece).first(got));
      count -= static_cast<int64_t>(got);
    }
    return digest_field(seen);
  }

 private:
  static int64_t size_of(const Segment& segment) {
    if (const auto* text = std::get_if<std::shared_ptr<const std::string>>(&segment))
      return static_cast<int64_t>((*text)->size());
    return std::get<std::shared_ptr<arrays::GatherReader>>(segment)->total_bytes();
  }

  std::vector<Segment> segments_;
  size_t next_ = 0;
  size_t in_text_ = 0;
};

std::optional<std::vector<std::span<const std::byte>>> ArrayStream::pieces() const {
  std::vector<std::span<const std::byte>> out;
  for (const Segment& segment : segments_) {
    if (const auto* text = std::get_if<std::shared_ptr<const std::string>>(&segment)) {
      if (!(*text)->empty()) out.push_back(std::as_bytes(std::span<const char>(**text)));
      continue;
    }
    const auto found = std::get<std::shared_ptr<arrays::GatherReader>>(segment)->pieces(
        kMostPieces - std::min(kMostPieces, out.size()));
    if (!found) return std::nullopt;
    out.insert(out.end(), found->begin(), found->end());
  }
  return out;
}

Response ArrayStream::respond(const Request& request, std::string_view media_type, const std::string& etag) && {
  if (auto in_memory = pieces()) {
    const std::string digest = wanted_digest(request.headers, *in_memory);
    auto keep = std::make_shared<std::vector<Segment>>(std::move(segments_));
    Response response = ranged(request, media_type, {std::move(*in_memory), std::move(keep)}, etag);
    if (!digest.empty() && response.status < 300) response.headers.set("Repr-Digest", digest);
    return response;
  }
  std::optional<ByteRange> range;
  try {
    range = requested_range(request, total_, etag);
  } catch (const core::Error& error) {
    return unsatisfiable(error, request, total_);
  }
  const ByteRange sent = range.value_or(ByteRange{0, total_});
  auto source = std::make_shared<Source>(std::move(segments_));
  Response response = generated(200, media_type, {});
  note_range(response, request, range, total_, etag);
  // What is made while it is sent is read once more for each digest.
  const bool wants_content = wants_digest(request.headers, "Want-Content-Digest");
  if (wants_content || wants_digest(request.headers, "Want-Repr-Digest"))
    response.headers.set("Repr-Digest", source->digest(0, total_));
  if (wants_content && request.method != "HEAD")
    response.headers.set("Content-Digest", source->digest(sent.first, sent.count));
  source->look(sent.first, sent.count);
  response.body = BodySource{sent.count, [source](std::span<std::byte> out) { return source->read(out); }};
  return response;
}

}  // namespace meshd::api
