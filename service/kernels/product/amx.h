// Tiles of a product of bfloat16 or int8 matrices by AMX: a unit of some processors that keeps eight tiles of 1 KiB in
// registers of their own and multiplies two of them in one instruction (Intel's manual, TDPBF16PS and TDPBSSD). Private
// to product/.
//
// Example: with k = 70 terms, 3 steps of 32 terms, 26 of them zeros. A panel of a is 16 rows, 3 * 1 KiB; a panel of b
// is 16 columns, 3 * 1 KiB; one step of one tile adds the products of 16 pairs of terms to 16 x 16 sums. Of int8 a step
// has 64 terms, in groups of four.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Rows and columns of a tile, and the groups of terms that a step adds to it: 4 bytes each, two bfloat16 or four int8.
inline constexpr int64_t kAmxSide = 16;
inline constexpr int64_t kAmxElements = kAmxSide * kAmxSide;
inline constexpr int64_t kAmxGroupBytes = 4;
inline constexpr int64_t kAmxRowBytes = kAmxSide * kAmxGroupBytes;
inline constexpr int64_t kAmxTileBytes = kAmxSide * kAmxRowBytes;

/// Sums of one or two panels of rows times one or two panels of columns, of `steps` steps each, as f32 or int32.
/// Earlier terms of a group are in its lower bytes. Denormal operands and sums count as zero, int32 wraps around.
/// Memory may have any alignment.
struct AmxCall {
  std::array<const std::byte*, 2> a{};  ///< panels of rows; null: there is one
  int64_t a_row_bytes = 0;
  int64_t a_step_bytes = 0;
  std::array<const uint32_t*, 2> b{};  ///< panels of columns, as (step, group, column); null: there is one
  const std::byte* from = nullptr;     ///< sums so far; null: zeros
  int64_t from_row_bytes = 0;
  std::byte* to = nullptr;  ///< all rows and columns of the panels
  int64_t to_row_bytes = 0;
  int64_t steps = 0;
};

/// What multiplies panels. A thread has the tiles from begin() to end(), and must not wait or change in between.
struct AmxUnit {
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  void (*multiply)(const AmxCall& call) = nullptr;
  /// Sums of bfloat16, none of which is denormal, narrowed, ties to even. Outside of begin() and end(), too.
  void (*narrow)(const float* sums, int64_t count, std::byte* to) = nullptr;
};

/// That of this processor, which must have it (has_amx()), for bfloat16 or int8.
const AmxUnit& amx_unit(tensor::DType in);

}  // namespace meshd::kernels
