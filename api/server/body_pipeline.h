// The decoding pipeline of a request body: framing, content coding, limits and counters, for bodies that the reactor
// reads and for those that handlers read themselves. No socket. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "api/fields/digests.h"
#include "api/http/body_framing.h"
#include "api/http/content_decoder.h"

namespace meshd::api {

class BodyPipeline {
 public:
  struct Step {
    size_t consumed = 0;  ///< raw bytes
    size_t produced = 0;  ///< body bytes
  };

  /// `limit` is in decoded bytes. `decoder` may be null.
  BodyPipeline(const Head& head, std::unique_ptr<ContentDecoder> decoder, int64_t limit);

  /// Moves bytes from `raw` to `destination`. Produced nothing and not done(): more raw bytes are needed. Throws
  /// malformed_body, digest_mismatch at the end, and body_too_large (over the limit, or more than 200 times the raw
  /// bytes after the first MiB).
  Step pump(std::string_view raw, std::span<std::byte> destination);

  /// Raw bytes that may be read from the socket straight into the caller's memory; then pass their number to took(). 0
  /// when bytes have to go through pump().
  [[nodiscard]] int64_t direct_room() const { return decoder_ ? 0 : framing_.data_room(); }
  void took(std::span<const std::byte> bytes);

  [[nodiscard]] bool done() const { return done_; }
  /// What the body was announced with; may be null. Before the first byte.
  void expect(std::unique_ptr<BodyDigest> digest) { digest_ = std::move(digest); }
  /// Lowers the limit. Throws body_too_large if it is known already that the body is larger.
  void lower_limit(int64_t limit);
  /// Size of the whole body, if known.
  [[nodiscard]] std::optional<int64_t> announced() const { return announced_; }
  [[nodiscard]] int64_t produced() const { return produced_; }
  /// Raw bytes that are still to come, if known.
  [[nodiscard]] std::optional<int64_t> raw_left() const;
  /// Walks over raw bytes without decoding them, to throw them away; returns how many were the body's.
  size_t skip(std::string_view raw);

 private:
  void count(size_t produced);
  void finish();

  BodyFraming framing_;
  std::unique_ptr<ContentDecoder> decoder_;
  std::unique_ptr<BodyDigest> digest_;  ///< null: none was announced
  std::optional<int64_t> announced_;
  int64_t limit_;
  int64_t produced_ = 0;
  int64_t coded_ = 0;  ///< bytes before decoding, framing left out
  bool done_ = false;
};

}  // namespace meshd::api
