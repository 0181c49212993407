// Response bodies composed of text and parts of arrays: files of one or several arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/http.h"
#include "service/arrays/region.h"

namespace meshd::api {

/// Segments in order; each is text of ours or a region of an array. A value that keeps what it needs alive. One thread.
class ArrayStream {
 public:
  void add(std::string text);
  void add(std::shared_ptr<arrays::GatherReader> region);
  [[nodiscard]] int64_t total_bytes() const { return total_; }

  /// The response: without a copy where the shards are few slices, with byte ranges on request; else produced while it
  /// is sent. `etag` may be empty.
  Response respond(const Request& request, std::string_view media_type, const std::string& etag) &&;

 private:
  using Segment = std::variant<std::shared_ptr<const std::string>, std::shared_ptr<arrays::GatherReader>>;
  std::vector<Segment> segments_;
  int64_t total_ = 0;
};

/// The bytes of a region in memory of their own.
std::shared_ptr<std::vector<std::byte>> dense_bytes(arrays::GatherReader& region);

}  // namespace meshd::api
