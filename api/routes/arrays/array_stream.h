// Response bodies composed of text and parts of arrays: files of one or several arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/http.h"
#include "api/routes/services.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {

/// Segments in order; each is text of ours or a region of an array. A value that keeps what it needs alive. One thread.
class ArrayStream {
 public:
  void add(std::string text);
  void add(std::shared_ptr<arrays::GatherReader> region);
  [[nodiscard]] int64_t total_bytes() const { return total_; }

  /// The response, with byte ranges and digests on request: without a copy where all is in memory, in few slices; else
  /// read while it is sent. `etag` may be empty.
  Response respond(const Request& request, std::string_view media_type, const std::string& etag) &&;

 private:
  class Source;
  using Segment = std::variant<std::shared_ptr<const std::string>, std::shared_ptr<arrays::GatherReader>>;
  [[nodiscard]] std::optional<std::vector<std::span<const std::byte>>> pieces() const;

  std::vector<Segment> segments_;
  int64_t total_ = 0;
};

/// Memory of downloads that a response holds for pages of blobs while it is sent: of its largest region, as one region
/// is read after another. An account of its own: clients that do not read what they asked for keep others from
/// downloads, and from nothing else.
using PageMemory = std::shared_ptr<core::MemoryReservation>;
PageMemory page_memory(Services& services);

/// A reader whose pages `memory` holds, which it keeps alive. Throws memory_full.
std::shared_ptr<arrays::GatherReader> counted_reader(const PageMemory& memory,
                                                     std::shared_ptr<const sharding::Layout> layout,
                                                     tensor::DType dtype, arrays::ReadableShards shards,
                                                     std::vector<arrays::Slice> slices);

/// The bytes of a region in memory of their own.
std::shared_ptr<std::vector<std::byte>> dense_bytes(arrays::GatherReader& region);

}  // namespace meshd::api
