#include "service/kernels/product/amx_panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

using Lines = std::array<const std::byte*, kAmxGroupBytes>;

// 16 elements of a line; of a line that is missing, or behind `count`, zeros. T: unsigned, of an element's size.
template <typename T>
using Part = std::array<T, kAmxSide>;
template <typename T>
[[gnu::always_inline]] inline void read_rest(const std::byte* from, int64_t bytes, Part<T>& to) {
  to = {};
  std::memcpy(to.data(), from, static_cast<size_t>(bytes));
}
template <typename T>
[[gnu::always_inline]] inline void read_part(const std::byte* line, int64_t at, int64_t count, Part<T>& to) {
  constexpr int64_t kBytes = sizeof(T);
  if (line == nullptr)
    to = {};
  else if (at + kAmxSide <= count)
    std::memcpy(to.data(), line + at * kBytes, sizeof(to));
  else
    read_rest(line + at * kBytes, (count - at) * kBytes, to);
}

[[gnu::always_inline]] inline void group_two(const Lines& lines, int64_t count, uint32_t* to, int64_t panel_pitch) {
  for (int64_t at = 0; at < count; at += kAmxSide, to += panel_pitch) {
    Part<uint16_t> first;
    Part<uint16_t> second;
    read_part(lines[0], at, count, first);
    read_part(lines[1], at, count, second);
    for (size_t i = 0; i < kAmxSide; ++i) to[i] = first[i] | uint32_t{second[i]} << 16;
  }
}

[[gnu::always_inline]] inline void group_four(const Lines& lines, int64_t count, uint32_t* to, int64_t panel_pitch) {
  for (int64_t at = 0; at < count; at += kAmxSide, to += panel_pitch) {
    Part<uint8_t> parts[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) read_part(lines[k], at, count, parts[k]);
    for (size_t i = 0; i < kAmxSide; ++i) {
      to[i] = parts[0][i] | uint32_t{parts[1][i]} << 8 | uint32_t{parts[2][i]} << 16 | uint32_t{parts[3][i]} << 24;
    }
  }
}

[[gnu::always_inline]] inline void group_any(const Lines& lines, int64_t elem_bytes, int64_t count, uint32_t* to,
                                             int64_t panel_pitch) {
  if (elem_bytes == 1)
    group_four(lines, count, to, panel_pitch);
  else
    group_two(lines, count, to, panel_pitch);
}

[[gnu::always_inline]] inline void copy_all(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t bytes,
                                            uint32_t* panel) {
  for (int64_t i = 0; i < kAmxSide; ++i) {
    const std::byte* const row = from + i * row_bytes;
    uint32_t* to = panel + i * kAmxSide;
    for (int64_t at = 0; at < bytes; at += kAmxRowBytes, to += kAmxElements) {
      if (i < rows && at + kAmxRowBytes <= bytes) {
        std::memcpy(to, row + at, kAmxRowBytes);
        continue;
      }
      std::memset(to, 0, kAmxRowBytes);
      if (i < rows) std::memcpy(to, row + at, static_cast<size_t>(bytes - at));
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void group_lines_v4(const Lines& lines, int64_t elem_bytes,
                                                                              int64_t count, uint32_t* to,
                                                                              int64_t panel_pitch) {
  group_any(lines, elem_bytes, count, to, panel_pitch);
}
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void copy_rows_v4(const std::byte* from, int64_t row_bytes,
                                                                            int64_t rows, int64_t bytes,
                                                                            uint32_t* panel) {
  copy_all(from, row_bytes, rows, bytes, panel);
}
#endif

}  // namespace

void group_lines(const Lines& lines, int64_t elem_bytes, int64_t count, uint32_t* to, int64_t panel_pitch) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return group_lines_v4(lines, elem_bytes, count, to, panel_pitch);
#endif
  group_any(lines, elem_bytes, count, to, panel_pitch);
}

void copy_rows(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t bytes, uint32_t* panel) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return copy_rows_v4(from, row_bytes, rows, bytes, panel);
#endif
  copy_all(from, row_bytes, rows, bytes, panel);
}

}  // namespace meshd::kernels
