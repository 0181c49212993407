#include "api/http/body_framing.h"

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr int kSizeDigits = 15;
constexpr int64_t kExtraBytes = 8 * 1024;

[[noreturn]] void malformed_framing(const char* detail) { throw core::Error("malformed_body", detail); }

}  // namespace

BodyFraming::BodyFraming(Framing framing, int64_t content_length)
    : chunked_(framing == Framing::kChunked),
      state_(framing == Framing::kChunked ? State::kSize : State::kData),
      room_(framing == Framing::kLength ? content_length : 0) {
  if (!chunked_ && room_ == 0) state_ = State::kEnded;
}

size_t BodyFraming::consume_framing(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kData && state_ != State::kEnded) step(bytes[taken++]);
  return taken;
}

void BodyFraming::advance(int64_t bytes) {
  room_ -= bytes;
  if (room_ == 0) state_ = chunked_ ? State::kDataCr : State::kEnded;
}

void BodyFraming::step(char c) {
  switch (state_) {
    case State::kSize:
      step_size(c);
      return;
    case State::kSizeSpace:
      // RFC 9112 7.1.1: bad whitespace, to be taken before ';' only.
      if (c == ';') {
        state_ = State::kExtension;
      } else if ((c != ' ' && c != '\t') || ++extra_bytes_ > kExtraBytes) {
        malformed_framing("a chunk size must be hex digits");
      }
      return;
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeLf;
      } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) {
        malformed_framing("a chunk extension holds a control byte");
      } else if (++extra_bytes_ > kExtraBytes) {
        malformed_framing("too many bytes of chunk extensions");
      }
      return;
    case State::kSizeLf:
      if (c != '\n') malformed_framing("a chunk size is not followed by CRLF");
      room_ = size_;
      state_ = size_ == 0 ? State::kTrailer : State::kData;
      size_ = 0;
      size_digits_ = 0;
      line_empty_ = true;
      return;
    case State::kDataCr:
      if (c != '\r') malformed_framing("a chunk is not followed by CRLF");
      state_ = State::kDataLf;
      return;
    case State::kDataLf:
      if (c != '\n') malformed_framing("a chunk is not followed by CRLF");
      state_ = State::kSize;
      return;
    case State::kTrailer:
      step_trailer(c);
      return;
    case State::kTrailerLf:
      if (c != '\n') malformed_framing("a trailer line does not end in CRLF");
      state_ = line_empty_ ? State::kEnded : State::kTrailer;
      line_empty_ = true;
      return;
    case State::kData:
    case State::kEnded:
      return;
  }
}

void BodyFraming::step_size(char c) {
  const int digit = hex_digit(c);
  if (digit >= 0) {
    if (++size_digits_ > kSizeDigits) malformed_framing("a chunk size has too many digits");
    size_ = size_ * 16 + digit;
    return;
  }
  if (size_digits_ == 0) malformed_framing("a chunk size must be hex digits");
  if (c == '\r') {
    state_ = State::kSizeLf;
  } else if (c == ';') {
    state_ = State::kExtension;  // unknown extensions are ignored
  } else if (c == ' ' || c == '\t') {
    state_ = State::kSizeSpace;
  } else {
    malformed_framing("a chunk size must be hex digits");
  }
}

void BodyFraming::step_trailer(char c) {
  // Trailer fields are checked for bytes that could hide a request, and dropped.
  if (c == '\r') {
    state_ = State::kTrailerLf;
    return;
  }
  if (line_empty_ && !is_token_character(c)) malformed_framing("a trailer line does not start with a name");
  if (static_cast<unsigned char>(c) < 0x20 && c != '\t') malformed_framing("a trailer holds a control byte");
  line_empty_ = false;
  if (++extra_bytes_ > kExtraBytes) malformed_framing("too many bytes of trailers");
}

}  // namespace meshd::api
