#include "service/kernels/product/amx.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#endif

namespace meshd::kernels {
namespace {

#if defined(__x86_64__)

#define MESHD_AMX_TARGET gnu::target("amx-tile,amx-bf16,amx-int8")

// Palette 1, eight tiles of 16 rows of 64 bytes (Intel's manual, LDTILECFG).
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{};
  std::array<uint8_t, 16> rows{};

  constexpr TileConfiguration() {
    for (size_t tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = kAmxRowBytes;
      rows[tile] = kAmxSide;
    }
  }
};
constexpr TileConfiguration kAllTiles;

[[MESHD_AMX_TARGET]] void begin_tiles() { _tile_loadconfig(&kAllTiles); }
[[MESHD_AMX_TARGET]] void end_tiles() { _tile_release(); }

// g++ does not know that tiles are loaded from memory: what was written stays in front, what is written stays behind.
[[gnu::always_inline]] inline void keep_order() { asm volatile("" ::: "memory"); }

// The tiles of sums, of rows and of columns, whose numbers are parts of the instruction.
#define MESHD_AMX_ADD(sums, rows, columns) \
  do {                                     \
    if constexpr (kIsInt8) {               \
      _tile_dpbssd(sums, rows, columns);   \
    } else {                               \
      _tile_dpbf16ps(sums, rows, columns); \
    }                                      \
  } while (false)

// Tiles 0 to 3 have the sums, 4 and 5 the rows, 6 and 7 the columns: four products of four loads, which take half as
// long as these.
template <bool kIsInt8, bool kTwoRows, bool kTwoColumns>
[[MESHD_AMX_TARGET]] void multiply_panels(const AmxCall& call) {
  keep_order();
  // Tile (1, 0) is 16 rows below tile (0, 0), and so on.
  if (call.from != nullptr) {
    const std::byte* const from = call.from;
    const std::byte* const below = from + kAmxSide * call.from_row_bytes;
    _tile_loadd(0, from, call.from_row_bytes);
    if constexpr (kTwoColumns) _tile_loadd(1, from + kAmxRowBytes, call.from_row_bytes);
    if constexpr (kTwoRows) _tile_loadd(2, below, call.from_row_bytes);
    if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, below + kAmxRowBytes, call.from_row_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoRows) _tile_zero(2);
    if constexpr (kTwoRows && kTwoColumns) _tile_zero(3);
  }
  const std::byte* a = call.a[0];
  const std::byte* a_second = call.a[1];
  const auto* b = reinterpret_cast<const std::byte*>(call.b[0]);
  const auto* b_second = reinterpret_cast<const std::byte*>(call.b[1]);
  for (int64_t step = 0; step < call.steps; ++step) {
    _tile_loadd(4, a + step * call.a_step_bytes, call.a_row_bytes);
    _tile_loadd(6, b + step * kAmxTileBytes, kAmxRowBytes);
    if constexpr (kTwoColumns) _tile_loadd(7, b_second + step * kAmxTileBytes, kAmxRowBytes);
    if constexpr (kTwoRows) _tile_loadd(5, a_second + step * call.a_step_bytes, call.a_row_bytes);
    MESHD_AMX_ADD(0, 4, 6);
    if constexpr (kTwoColumns) MESHD_AMX_ADD(1, 4, 7);
    if constexpr (kTwoRows) MESHD_AMX_ADD(2, 5, 6);
    if constexpr (kTwoRows && kTwoColumns) MESHD_AMX_ADD(3, 5, 7);
  }
  std::byte* const to = call.to;
  std::byte* const below = to + kAmxSide * call.to_row_bytes;
  _tile_stored(0, to, call.to_row_bytes);
  if constexpr (kTwoColumns) _tile_stored(1, to + kAmxRowBytes, call.to_row_bytes);
  if constexpr (kTwoRows) _tile_stored(2, below, call.to_row_bytes);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, below + kAmxRowBytes, call.to_row_bytes);
  keep_order();
}

template <bool kIsInt8>
void multiply(const AmxCall& call) {
  const bool has_two_rows = call.a[1] != nullptr;
  const bool has_two_columns = call.b[1] != nullptr;
  if (has_two_rows && has_two_columns) return multiply_panels<kIsInt8, true, true>(call);
  if (has_two_rows) return multiply_panels<kIsInt8, true, false>(call);
  if (has_two_columns) return multiply_panels<kIsInt8, false, true>(call);
  multiply_panels<kIsInt8, false, false>(call);
}

#undef MESHD_AMX_ADD
#undef MESHD_AMX_TARGET

// The instruction takes denormals for zero. Processors with AMX have it.
[[gnu::target("avx512bf16,avx512vl,avx512bw")]] void narrow(const float* sums, int64_t count, std::byte* to) {
  constexpr int64_t kLanes = 32;
  for (int64_t at = 0; at < count; at += kLanes) {
    const int64_t left = std::min(kLanes, count - at);
    const auto load = [&](int64_t first) __attribute__((target("avx512f"), always_inline)) {
      const int64_t lanes = std::clamp<int64_t>(left - first, 0, kLanes / 2);
      return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << lanes) - 1), sums + at + first);
    };
    const __m512bh made = _mm512_cvtne2ps_pbh(load(kLanes / 2), load(0));
    const auto mask = static_cast<__mmask32>((uint64_t{1} << left) - 1);
    _mm512_mask_storeu_epi16(to + at * 2, mask, reinterpret_cast<__m512i>(made));
  }
}

constexpr AmxUnit kOfBfloat16{begin_tiles, end_tiles, multiply<false>, narrow};
constexpr AmxUnit kOfInt8{begin_tiles, end_tiles, multiply<true>, nullptr};

#else

constexpr AmxUnit kOfBfloat16{};
constexpr AmxUnit kOfInt8{};

#endif

}  // namespace

const AmxUnit& amx_unit(tensor::DType in) { return in == tensor::DType::kInt8 ? kOfInt8 : kOfBfloat16; }

}  // namespace meshd::kernels
