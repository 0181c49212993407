#include "service/kernels/product/tile_kernel.h"

#include <cstddef>
#include <utility>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

// One vector, loaded from and stored to any address. In structs, because an argument of a template would lose the
// alignment, as would a pointer declared auto.
struct Wide {
  using Vector [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
};
struct Middle {
  using Vector [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
};
struct Narrow {
  using Vector [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
};

// The sums of `depth` terms, from where a and b are on, to where they end. Each loop but the one over the terms is
// unrolled, so that sums are registers.
template <class Width, int kRows, int kVectors, TileRows kOrder>
[[gnu::always_inline]] inline void sum_terms(typename Width::Vector (&sums)[kRows][kVectors], int64_t depth,
                                             const float*& a, int64_t a_pitch, const float*& b, int64_t b_pitch) {
  using Vector = typename Width::Vector;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[i][v] = Vector{};
  }
  for (int64_t left = depth; left > 0; --left) {
    Vector row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const Vector*>(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float factor = a[i * (kOrder == TileRows::kColumns ? 1
                                  : kOrder == TileRows::kStrip ? kTilePitch
                                                               : a_pitch)];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] += factor * row[v];
    }
    a += kOrder == TileRows::kColumns ? a_pitch : 1;
    b += b_pitch;
  }
}

template <class Width, int kRows, int kVectors, TileRows kOrder>
[[gnu::always_inline]] inline void multiply_tile(const TileCall& call) {
  using Vector = typename Width::Vector;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    // Read or written when the sums are made.
    __builtin_prefetch(call.c + i * call.c_pitch, 1);
    __builtin_prefetch(call.c + i * call.c_pitch + kLanes * kVectors - 1, 1);
  }
  const float* a = call.a;
  const float* b = call.b;
  const bool is_halved = call.depth > kTileChain;
  const int64_t second = is_halved ? call.depth / 2 : 0;
  Vector sums[kRows][kVectors];
  sum_terms<Width, kRows, kVectors, kOrder>(sums, call.depth - second, a, call.a_pitch, b, call.b_pitch);
  if (is_halved) {
    Vector first[kRows][kVectors];  // in memory
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) first[i][v] = sums[i][v];
    }
    sum_terms<Width, kRows, kVectors, kOrder>(sums, second, a, call.a_pitch, b, call.b_pitch);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] = first[i][v] + sums[i][v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Vector* const to = reinterpret_cast<Vector*>(call.c + i * call.c_pitch + v * kLanes);
      *to = call.adds ? *to + sums[i][v] : sums[i][v];
    }
  }
}

inline void transpose_elements(const float* columns, int64_t column_pitch, int64_t count, int64_t first, int64_t depth,
                               float* rows, int64_t row_pitch) {
  for (int64_t p = first; p < depth; ++p) {
    for (int64_t j = 0; j < count; ++j) rows[p * row_pitch + j] = columns[j * column_pitch + p];
  }
}

void transpose_base(const float* columns, int64_t column_pitch, int64_t count, int64_t depth, float* rows,
                    int64_t row_pitch) {
  transpose_elements(columns, column_pitch, count, 0, depth, rows, row_pitch);
}

// Squares of 8 x 8 in registers: pairs, then fours, then eights change places.
[[gnu::always_inline]] inline void transpose_squares(const float* columns, int64_t column_pitch, int64_t count,
                                                     int64_t depth, float* rows, int64_t row_pitch) {
  using Vector = Middle::Vector;
  using Lanes [[gnu::vector_size(32)]] = int;
  constexpr int64_t kSide = 8;
  const int64_t whole = depth - depth % kSide;
  int64_t j = 0;
  for (; j + kSide <= count; j += kSide) {
    for (int64_t p = 0; p < whole; p += kSide) {
      Vector in[kSide];
      Vector pairs[kSide];
      Vector fours[kSide];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kSide; ++i)
        in[i] = *reinterpret_cast<const Vector*>(columns + (j + i) * column_pitch + p);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kSide; i += 2) {
        pairs[i] = __builtin_shuffle(in[i], in[i + 1], Lanes{0, 8, 1, 9, 4, 12, 5, 13});
        pairs[i + 1] = __builtin_shuffle(in[i], in[i + 1], Lanes{2, 10, 3, 11, 6, 14, 7, 15});
      }
#pragma GCC unroll 2
      for (int64_t i = 0; i < kSide; i += 4) {
#pragma GCC unroll 2
        for (int64_t k = 0; k < 2; ++k) {
          fours[i + 2 * k] = __builtin_shuffle(pairs[i + k], pairs[i + k + 2], Lanes{0, 1, 8, 9, 4, 5, 12, 13});
          fours[i + 2 * k + 1] = __builtin_shuffle(pairs[i + k], pairs[i + k + 2], Lanes{2, 3, 10, 11, 6, 7, 14, 15});
        }
      }
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        float* const to = rows + (p + i) * row_pitch + j;
        *reinterpret_cast<Vector*>(to) = __builtin_shuffle(fours[i], fours[i + 4], Lanes{0, 1, 2, 3, 8, 9, 10, 11});
        *reinterpret_cast<Vector*>(to + 4 * row_pitch) =
            __builtin_shuffle(fours[i], fours[i + 4], Lanes{4, 5, 6, 7, 12, 13, 14, 15});
      }
    }
    transpose_elements(columns + j * column_pitch, column_pitch, kSide, whole, depth, rows + j, row_pitch);
  }
  transpose_elements(columns + j * column_pitch, column_pitch, count - j, 0, depth, rows + j, row_pitch);
}

template <int kRows, int kVectors, TileRows kOrder>
void tile_base(const TileCall& call) {
  multiply_tile<Narrow, kRows, kVectors, kOrder>(call);
}

#if defined(__x86_64__)
template <int kRows, int kVectors, TileRows kOrder>
[[gnu::target("arch=x86-64-v3")]] void tile_v3(const TileCall& call) {
  multiply_tile<Middle, kRows, kVectors, kOrder>(call);
}

template <int kRows, int kVectors, TileRows kOrder>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void tile_v4(const TileCall& call) {
  multiply_tile<Wide, kRows, kVectors, kOrder>(call);
}

[[gnu::target("arch=x86-64-v3")]] void transpose_v3(const float* columns, int64_t column_pitch, int64_t count,
                                                    int64_t depth, float* rows, int64_t row_pitch) {
  transpose_squares(columns, column_pitch, count, depth, rows, row_pitch);
}
#endif

// Sums in 12 of 16 registers, or in 28 of 32, leave enough for the operands.
template <CpuLevel kLevel>
constexpr int kRowsOf = kLevel == CpuLevel::kV4 ? 14 : 6;

template <CpuLevel kLevel, int kRows, int kVectors, TileRows kOrder>
constexpr TileKernel kernel_of() {
#if defined(__x86_64__)
  if constexpr (kLevel == CpuLevel::kV4) return tile_v4<kRows, kVectors, kOrder>;
  if constexpr (kLevel == CpuLevel::kV3) return tile_v3<kRows, kVectors, kOrder>;
#endif
  return tile_base<kRows, kVectors, kOrder>;
}

template <CpuLevel kLevel, TileRows kOrder, int... kRow>
void fill_order(TileKernels& out, std::integer_sequence<int, kRow...> /*rows*/) {
  auto& kernels = out.kernels[static_cast<std::size_t>(kOrder)];
  ((kernels[0][kRow + 1] = kernel_of<kLevel, kRow + 1, 1, kOrder>()), ...);
  ((kernels[1][kRow + 1] = kernel_of<kLevel, kRow + 1, 2, kOrder>()), ...);
}

template <CpuLevel kLevel>
TileKernels kernels_of(int64_t lanes, TransposeKernel transpose) {
  TileKernels out;
  out.rows = kRowsOf<kLevel>;
  out.lanes = lanes;
  out.transpose = transpose;
  const auto rows = std::make_integer_sequence<int, kRowsOf<kLevel>>{};
  fill_order<kLevel, TileRows::kColumns>(out, rows);
  fill_order<kLevel, TileRows::kStrip>(out, rows);
  fill_order<kLevel, TileRows::kApart>(out, rows);
  return out;
}

}  // namespace

const TileKernels& tile_kernels() {
  static const TileKernels kernels = [] {
#if defined(__x86_64__)
    if (cpu_level() == CpuLevel::kV4) return kernels_of<CpuLevel::kV4>(16, transpose_v3);
    if (cpu_level() == CpuLevel::kV3) return kernels_of<CpuLevel::kV3>(8, transpose_v3);
#endif
    return kernels_of<CpuLevel::kBase>(4, transpose_base);
  }();
  return kernels;
}

}  // namespace meshd::kernels
