// The innermost loops of products of f32, of 32-bit integers, which wrap around, and of pairs of 16-bit integers: a
// tile of c whose sums stay in registers while both operands pass by. Private to product/.
//
// Example: AVX2, 16 registers of 8 lanes: a tile has 6 rows of two vectors (12 registers of sums); each step of the
// sum loads two vectors of b, and multiplies them by one element of each row of a.
#pragma once

#include <array>
#include <cstdint>

namespace meshd::kernels {

/// Most terms of a sum that a tile adds before they go to c: both operands' parts fit the caches.
inline constexpr int64_t kTileDepth = 384;
/// Of more terms of floats than these the two halves are added apart: rounding errors of long chains add up.
inline constexpr int64_t kTileChain = kTileDepth / 2;
/// Rows of a that lie as rows are this many elements apart, so that they do not share cache sets.
inline constexpr int64_t kTilePitch = kTileDepth + 16;
inline constexpr int64_t kMostTileRows = 14;

/// How a tile's rows of a lie, as element (i, p): at p * a_pitch + i, at i * kTilePitch + p, or at i * a_pitch + p.
enum class TileRows : uint8_t { kColumns, kStrip, kApart };

/// c (rows x columns) = a b, or c += a b. As many columns as the kernel's vectors have lanes; b is read in its rows,
/// `b_pitch` elements apart.
template <typename T>
struct TileCall {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  int64_t depth = 0;
  int64_t a_pitch = 0;  ///< not for kStrip
  int64_t b_pitch = 0;
  int64_t c_pitch = 0;
  bool adds = false;
};

template <typename T>
using TileKernel = void (*)(const TileCall<T>& call);

/// How columns of a matrix become rows: `count` columns of `depth` elements, `column_pitch` elements apart, are written
/// as rows of `row_pitch` elements.
template <typename T>
using TransposeKernel = void (*)(const T* columns, int64_t column_pitch, int64_t count, int64_t depth, T* rows,
                                 int64_t row_pitch);

/// The loops of one instruction level, for float or uint32_t. Sums of all of them have the same order; with fused
/// multiply-add (AVX2 and AVX-512), and of integers, the same bits.
template <typename T>
struct TileKernels {
  int64_t rows = 0;   ///< of the largest tile
  int64_t lanes = 0;  ///< of a vector; the largest tile has two
  /// [TileRows][vectors - 1][rows]
  std::array<std::array<std::array<TileKernel<T>, kMostTileRows + 1>, 2>, 3> kernels{};
  TransposeKernel<T> transpose = nullptr;

  [[nodiscard]] int64_t columns() const { return 2 * lanes; }
};

/// Those of this processor. Any thread.
template <typename T>
const TileKernels<T>& tile_kernels();
template <>
const TileKernels<float>& tile_kernels<float>();
template <>
const TileKernels<uint32_t>& tile_kernels<uint32_t>();

/// Where an element of a or b is two signed integers of 16 bits, and the product of two elements is the sum of their
/// products, of 32 bits: one instruction of x86 (Intel's manual, PMADDWD), so that a step has twice the terms of 32-bit
/// integers. There are none for TileRows::kApart.
const TileKernels<uint32_t>& pair_tile_kernels();

}  // namespace meshd::kernels
