// Streaming decoder of content codings of request bodies: gzip (RFC 1952) and zstd (RFC 8878). One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "service/core/memory_ledger.h"

namespace meshd::api {

/// One body's decoder.
class ContentDecoder {
 public:
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
  };

  virtual ~ContentDecoder() = default;
  /// Decodes from `input` into `output`; both may be used in part. Nothing produced with room in `output` and all input
  /// consumed means that more input is needed. Throws malformed_body.
  virtual Step step(std::span<const std::byte> input, std::span<std::byte> output) = 0;
  /// True when the input so far ends where the coding may end.
  [[nodiscard]] virtual bool complete() const = 0;
};

/// The decoder for a Content-Encoding value: "gzip", "x-gzip" or "zstd"; null for "" and "identity". `memory` grows by
/// the window of zstd data once that is known; step() throws memory_full where there is none. Throws
/// unsupported_media_type for any other or more than one.
std::unique_ptr<ContentDecoder> make_content_decoder(std::string_view content_encoding,
                                                     core::MemoryReservation memory = {});

}  // namespace meshd::api
