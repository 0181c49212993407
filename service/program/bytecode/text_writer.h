// Text that grows up to a limit and is counted as memory of its request while it does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/program/bytecode/memory_use.h"

namespace meshd::program {

/// One thread.
class TextWriter {
 public:
  TextWriter(int64_t limit_bytes, MemoryUse& memory) : limit_(limit_bytes), memory_(memory) {}

  /// Throws body_too_large beyond the limit.
  TextWriter& operator<<(std::string_view text);
  TextWriter& operator<<(char c) { return *this << std::string_view(&c, 1); }
  TextWriter& operator<<(int64_t value) { return *this << std::string_view(std::to_string(value)); }
  TextWriter& operator<<(int32_t value) { return *this << static_cast<int64_t>(value); }
  /// "0x" and two upper-case digits a byte.
  void hex(std::string_view bytes);

  [[nodiscard]] size_t size() const { return text_.size(); }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  /// Makes room for so many bytes more.
  void extend(size_t bytes);

  std::string text_;
  const int64_t limit_;
  MemoryUse& memory_;
};

}  // namespace meshd::program
