// Rows of a few bytes that lie apart, next to each other. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace meshd::kernels {

template <typename Word>
void move_words(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(Word));
}

/// Copies `count` rows of `bytes`, `from_step` and `to_step` bytes apart.
inline void move_rows(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count,
                      int64_t bytes) {
  if (from_step == bytes && to_step == bytes) {
    std::memcpy(to, from, static_cast<size_t>(count * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return move_words<uint8_t>(from, from_step, to, to_step, count);
    case 2:
      return move_words<uint16_t>(from, from_step, to, to_step, count);
    case 4:
      return move_words<uint32_t>(from, from_step, to, to_step, count);
    case 8:
      return move_words<uint64_t>(from, from_step, to, to_step, count);
    default:
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(bytes));
      }
  }
}

}  // namespace meshd::kernels
