// Message framing of request bodies: Content-Length or chunked transfer coding (RFC 9112 chapters 6 and 7). Pure; one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/http/head.h"

namespace meshd::api {

/// Parses transfer framing (RFC 9112): which of the raw bytes are the body's. First consume_framing(), then up to
/// data_room() bytes are data; advance() consumes them. Example, chunked "3\r\nabc\r\n0\r\n\r\n": consume_framing takes
/// 3 bytes, data_room is 3, advance(3), consume_framing takes 7 bytes, ended.
class BodyFraming {
 public:
  BodyFraming(Framing framing, int64_t content_length);

  /// Takes the bytes at the front that delimit data and returns how many; 0 where data or the end is next. Throws
  /// malformed_body.
  size_t consume_framing(std::string_view bytes);
  /// Data bytes that come next with nothing between them.
  [[nodiscard]] int64_t data_room() const { return room_; }
  void advance(int64_t bytes);
  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }
  [[nodiscard]] bool chunked() const { return chunked_; }

 private:
  enum class State { kSize, kSizeSpace, kExtension, kSizeLf, kData, kDataCr, kDataLf, kTrailer, kTrailerLf, kEnded };
  void step(char c);
  void step_size(char c);
  void step_trailer(char c);

  bool chunked_;
  State state_;
  int64_t room_ = 0;
  int64_t size_ = 0;
  int size_digits_ = 0;
  int64_t extra_bytes_ = 0;  ///< of extensions and trailers, limited in all
  bool line_empty_ = true;
};

}  // namespace meshd::api
