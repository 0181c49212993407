#include "service/kernels/product/amx_panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/cpu.h"
#include "service/kernels/product/amx.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kPanelLine = kAmxSide * 4;
constexpr int64_t kBfloatBytes = 2;

using PanelLine = std::array<uint16_t, kAmxSide>;

// Of `count` elements, a constant where a panel is full.
[[gnu::always_inline]] inline void load_line(const std::byte* from, int64_t count, PanelLine& to) {
  if (count == kAmxSide)
    std::memcpy(to.data(), from, sizeof(to));
  else
    std::memcpy(to.data(), from, static_cast<size_t>(count * kBfloatBytes));
}

[[gnu::always_inline]] inline void pair_all(const std::byte* first, const std::byte* second, int64_t count,
                                            uint32_t* to, int64_t panel_pitch) {
  for (int64_t at = 0; at < count; at += kAmxSide, to += panel_pitch) {
    const int64_t some = std::min(kAmxSide, count - at);
    PanelLine low{};
    PanelLine high{};
    if (first != nullptr) load_line(first + at * kBfloatBytes, some, low);
    if (second != nullptr) load_line(second + at * kBfloatBytes, some, high);
    for (size_t i = 0; i < kAmxSide; ++i) to[i] = low[i] | uint32_t{high[i]} << 16;
  }
}

[[gnu::always_inline]] inline void copy_all(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t terms,
                                            uint32_t* panel) {
  for (int64_t i = 0; i < kAmxSide; ++i) {
    const std::byte* const row = from + i * row_bytes;
    uint32_t* to = panel + i * kAmxSide;
    for (int64_t p = 0; p < terms; p += kAmxTerms, to += kAmxElements) {
      if (i < rows && p + kAmxTerms <= terms) {
        std::memcpy(to, row + p * kBfloatBytes, kPanelLine);
        continue;
      }
      std::memset(to, 0, kPanelLine);
      if (i < rows) std::memcpy(to, row + p * kBfloatBytes, static_cast<size_t>((terms - p) * kBfloatBytes));
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void pair_lines_v4(const std::byte* first,
                                                                             const std::byte* second, int64_t count,
                                                                             uint32_t* to, int64_t panel_pitch) {
  pair_all(first, second, count, to, panel_pitch);
}
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void copy_rows_v4(const std::byte* from, int64_t row_bytes,
                                                                            int64_t rows, int64_t terms,
                                                                            uint32_t* panel) {
  copy_all(from, row_bytes, rows, terms, panel);
}
#endif

}  // namespace

void pair_lines(const std::byte* first, const std::byte* second, int64_t count, uint32_t* to, int64_t panel_pitch) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return pair_lines_v4(first, second, count, to, panel_pitch);
#endif
  pair_all(first, second, count, to, panel_pitch);
}

void copy_rows(const std::byte* from, int64_t row_bytes, int64_t rows, int64_t terms, uint32_t* panel) {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return copy_rows_v4(from, row_bytes, rows, terms, panel);
#endif
  copy_all(from, row_bytes, rows, terms, panel);
}

}  // namespace meshd::kernels
