#include "service/program/bytecode/text_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::program {

void TextWriter::extend(size_t bytes) {
  if (static_cast<int64_t>(bytes) > limit_ - static_cast<int64_t>(text_.size())) {
    throw core::Error(
        "body_too_large",
        fmt::format("the artifact's program takes more than {} bytes as text; send large constants as arguments",
                    limit_));
  }
  const size_t needed = text_.size() + bytes;
  if (needed <= text_.capacity()) return;
  // A large constant comes at once, with little behind it: the text is not doubled for that.
  constexpr size_t kSpare = size_t{64} << 10;
  const size_t more = std::min(text_.capacity(), kSpare + text_.capacity() / 8);
  const size_t wanted = std::max(needed + std::min(needed / 8, kSpare), text_.capacity() + more);
  memory_.take(wanted - text_.capacity());
  text_.reserve(wanted);
}

TextWriter& TextWriter::operator<<(std::string_view text) {
  extend(text.size());
  text_ += text;
  return *this;
}

void TextWriter::hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  // Checked by division: the text is twice as long.
  extend(bytes.size() > static_cast<size_t>(limit_) / 2 ? static_cast<size_t>(limit_) + 1 : 2 * bytes.size() + 2);
  text_ += "0x";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text_ += kDigits[byte >> 4];
    text_ += kDigits[byte & 0xF];
  }
}

}  // namespace meshd::program
